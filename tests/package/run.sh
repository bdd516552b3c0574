#!/bin/bash
# Tries the archive in a bare Debian: the packages that such a system cannot do without, and nothing else. Needs root. The
# archive must be there (make package), and for another machine this one's program too (make build).
#
#   run.sh [MACHINE] [SUITE]   MACHINE: this one, or aarch64, which is emulated; SUITE: a release of Debian, trixie (13)
#                              unless stated
source "$(dirname "$0")/../../scripts/lib.sh"

readonly machine=${1:-$(uname -m)} suite=${2:-trixie}
case $machine in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) fail "usage: $0 [x86_64 | aarch64] [SUITE]" ;;
esac
compiler=cc emulator='' llama_bin='' program=build-package/rowtide
if [ "$machine" = "$(uname -m)" ]; then
  llama_bin=$("$root/scripts/llama_setup.sh" where)/bin
else
  compiler=$machine-linux-gnu-gcc program=build/rowtide
  emulator=$(command -v "qemu-$machine-static") || fail "no qemu-$machine-static here"
fi
readonly folder=$cache/roots/$suite-$architecture

# From where the system's own apt gets its packages. Kept; a set-up that was interrupted leaves nothing half done.
make_root() {
  [ -d "$folder" ] && return
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' | head -n 1)
  [ -n "$mirror" ] || fail "apt knows no archive of Debian packages: run apt-get update"
  say "a bare Debian $suite for $architecture, from the archive that apt uses (2 minutes)"
  rm -rf "$folder.partial" && mkdir -p "$folder.partial"
  debootstrap ${emulator:+--foreign} --arch="$architecture" --variant=minbase "$suite" "$folder.partial" "$mirror" \
    >"$folder.log" 2>&1 || {
    tail -n 20 "$folder.log" >&2
    fail "debootstrap could not make it; the log is $folder.log"
  }
  if [ -L "$folder.partial/proc" ]; then  # which debootstrap leaves where it cannot finish what is for other machines
    rm "$folder.partial/proc" && mkdir "$folder.partial/proc"
  fi
  mv "$folder.partial" "$folder"
}

[ "$(id -u)" -eq 0 ] || fail "a bare Debian is made and entered by root: run this with sudo"
make_root
ROWTIDE_ARCHIVE=$("$root/scripts/package.sh" where "$machine") ROWTIDE_ROOT=$folder ROWTIDE_PROGRAM=$root/$program \
  ROWTIDE_C_COMPILER=$compiler ROWTIDE_EMULATOR=$emulator ROWTIDE_LLAMA_BIN=$llama_bin \
  python3 -B "$root/tests/package/archive_test.py" -v
