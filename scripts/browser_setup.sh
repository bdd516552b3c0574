#!/bin/bash
# Fetches what drives a browser in tests of the Explorer page: Playwright, for Debian's chromium. Called by setup.sh.
#
#   browser_setup.sh         fetches it (45 MB)
#   browser_setup.sh where   prints the Python that has it; it need not exist yet
source "$(dirname "$0")/lib.sh"

case "${1:-}" in
  '') make_venv "$cache/browser" --no-deps playwright==1.65.2 greenlet==3.5.6 ;;
  where) echo "$cache/browser/bin/python" ;;
  *) fail "usage: $0 [where]" ;;
esac
