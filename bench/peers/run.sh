#!/bin/bash
# Gathers the same rows of one file by Rowtide and by the row stores of two Python packages, in one run.
#
#   bench/peers/run.sh [OPTIONS]    compare.py --help says which
#
# The packages go into an environment of their own under the cache folder, 5 GiB, at first some minutes. FreeToken is
# installed without what it needs for inference on a GPU, which its row store does not; PyTorch it does need.
source "$(dirname "$0")/../../scripts/lib.sh"
readonly peers=$cache/peers
readonly with_needs="numpy==2.2.6 engramdb-python==0.3.0 torch==2.14.0"
readonly alone="freetoken==0.2.1"

if [ "$(cat "$peers/peers" 2>/dev/null)" != "$with_needs $alone" ]; then
  make_venv "$peers" $with_needs
  "$peers/bin/pip" install --quiet --disable-pip-version-check --no-deps $alone
  echo "$with_needs $alone" >"$peers/peers"
fi
[ -e "$root/build/librowtide_shared.so" ] || fail "Rowtide is not built with its benchmarks: run make test first"
exec "$peers/bin/python" -B "$root/bench/peers/compare.py" --library "$root/build/librowtide_shared.so" "$@"
