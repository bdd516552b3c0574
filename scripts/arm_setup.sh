#!/bin/bash
# Fetches Debian's arm64 libraries into a folder that compiler and emulator take for the root of an Arm machine. dpkg and
# the lists of packages of the system stay as they are. Called by setup.sh, one at a time; needs no root.
#
#   arm_setup.sh sysroot   C library, the libraries that Rowtide and its tests need, and their headers (31 MB)
#   arm_setup.sh where     prints the folder; it need not exist yet
source "$(dirname "$0")/lib.sh"

# With what each of them needs; versions are those of the system's Debian release.
readonly packages="libc6-dev libstdc++6 liburing-dev libevent-dev libfmt-dev libxxhash-dev libicu-dev libcli11-dev nlohmann-json3-dev
  rapidjson-dev libgtest-dev libgmock-dev librapidcheck-dev"
readonly here=$cache/arm64

# Of the system's own set-up, apt uses its sources and their keys alone.
apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::lists="$partial/lists" \
    -o Dir::State::status=/dev/null -o Dir::State::extended_states="$partial/states" -o Dir::Cache="$partial/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User= -o Acquire::Languages=none \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@" </dev/null
}

# Unpacks into a folder of its own and renames it, so that an interrupted set-up leaves nothing half done. Made anew when
# the list of packages or the system's release changes.
sysroot() {
  local state archive link
  state=$(grep ^VERSION_ID= /etc/os-release; echo $packages)
  [ "$(cat "$here/packages" 2>/dev/null)" = "$state" ] && return
  command -v apt-get >/dev/null || fail "no apt-get here: give cmake -DROWTIDE_SYSROOT= a folder with $(echo $packages) for arm64"
  say "arm64 libraries of Debian (31 MB)"
  partial=$here.partial
  rm -rf "$partial" && mkdir -p "$partial"/{lists,cache/archives}/partial "$partial/root/usr/lib"
  ln -s usr/lib "$partial/root/lib"
  apt update
  apt install --yes --no-install-recommends --download-only $packages >"$partial/log" 2>&1 || {
    cat "$partial/log" >&2
    fail "the arm64 packages could not be fetched"
  }
  for archive in "$partial"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$archive" | tar x -C "$partial/root" --keep-directory-symlink --no-same-owner
  done
  find "$partial/root" -type l -lname '/*' | while read -r link; do  # which would lead out of it
    ln -sfr "$partial/root$(readlink "$link")" "$link"
  done
  rm -rf "$partial/root/usr/share/"{doc,man,locale,bug,lintian,icu}
  echo "$state" >"$partial/root/packages"
  rm -rf "$here" && mv "$partial/root" "$here"
  rm -rf "$partial"
}

case "${1:-}" in
  sysroot) sysroot ;;
  where) echo "$here" ;;
  *) fail "usage: $0 sysroot | where" ;;
esac
