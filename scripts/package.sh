#!/bin/bash
# Builds the archive that runs on other machines, checks it, and says what it is and how large.
#
#   package.sh [MACHINE]        build-package/rowtide-VERSION-linux-MACHINE.tar.xz, and .sha256 beside it; MACHINE is this
#                               one, as uname -m says it, or aarch64: cross-built in build-package-aarch64/
#   package.sh where [MACHINE]  prints the path of the archive
#
# ROWTIDE_LLAMA_DIR names another llama.cpp than set-up fetched. The same sources give the same archive.
source "$(dirname "$0")/lib.sh"
cd "$root"

# What is linked into what the archive holds, and whose Debian package says under which licence.
readonly linked_in="libevent-dev libfmt-dev libicu-dev liburing-dev libxxhash-dev libcli11-dev nlohmann-json3-dev rapidjson-dev
  libstdc++-12-dev"

task=archive
[ "${1:-}" = where ] && task=where && shift
readonly machine=${1:-$(uname -m)}
case $machine in
  "$(uname -m)") preset=package ;;
  aarch64) preset=package-aarch64 ;;
  *) fail "no archive for $machine can be made here; usage: $0 [where] [$(uname -m) | aarch64]" ;;
esac
readonly build=build-$preset
version=$(sed -n 's/^project(rowtide VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
readonly name=rowtide-$version-linux-$machine

licences() { # FOLDER
  local package llama=${ROWTIDE_LLAMA_DIR:-$(scripts/llama_setup.sh where)}
  mkdir "$1"
  for package in $linked_in; do
    cp --dereference "/usr/share/doc/$package/copyright" "$1/${package%-dev}.txt"
  done
  [ -d "$llama/src/ggml" ] && llama=$llama/src
  cp "$llama/LICENSE" "$1/llama.cpp.txt"
}

archive() {
  local stage=$build/archive/$name file=$build/$name.tar.xz
  cmake --preset "$preset" ${ROWTIDE_LLAMA_DIR:+-DROWTIDE_LLAMA_DIR="$ROWTIDE_LLAMA_DIR"}
  cmake --build --preset "$preset"

  rm -rf "$build/archive"
  cmake --install "$build" --prefix "$stage" --strip --component program >/dev/null
  cmake --install "$build" --prefix "$stage" --strip --component c >/dev/null
  cp docs/archive.md "$stage/README.md"
  cp LICENSE examples/c/rows.c "$stage/"
  mkdir "$stage/docs" && cp docs/cli.md docs/llama-cpp.md docs/formats.md "$stage/docs/"
  licences "$stage/licences"

  say "looking through $name for what would not run elsewhere"
  python3 -B scripts/check_package.py "$stage" "$machine" "$root" "$cache" || fail "the archive would not run elsewhere"

  local epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y CMakeLists.txt)}
  tar --create --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=gnu \
    --directory "$build/archive" "$name" | xz -9 --threads=1 >"$file.partial"
  mv "$file.partial" "$file"
  (cd "$build" && sha256sum "$name.tar.xz" >"$name.tar.xz.sha256")
  say "$file, $(stat --format=%s "$file") bytes"
}

case $task in
  where) echo "$root/$build/$name.tar.xz" ;;
  archive) archive ;;
esac
