#!/bin/bash
# Compares build/rowtide with the engines' own loaders, in the Python environment that `setup.sh loaders` makes.
# Arguments are those of loaders_test.py.
source "$(dirname "$0")/../../../scripts/lib.sh"
exec "$cache/loaders/bin/python" -B "$root/tests/e2e/loaders/loaders_test.py" \
  --deepseek-tokenizer "$("$root/scripts/tokenizer_setup.sh" where)" "$@"
