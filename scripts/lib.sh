# Read by the set-up scripts: where things are kept, how they speak, and Python environments.
set -euo pipefail
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$(realpath --canonicalize-missing "${ROWTIDE_CACHE_DIR:-$root/.cache}")

say() { echo "set-up: $*"; }

fail() {
  echo "set-up: $*" >&2
  exit 1
}

# make_venv FOLDER PACKAGE==VERSION...: a Python environment that holds exactly these packages. Kept; made anew when
# the list changes.
make_venv() {
  local folder=$1
  shift
  [ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ] && return
  say "Python environment with $*"
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
  echo "$*" >"$folder/packages"
}
