#!/bin/bash
case "${1:-}" in
  where) echo "${ROWTIDE_CACHE_DIR:-$(cd "$(dirname "$0")/.." && pwd)/.cache}/llama/v0.5.0" ;;
esac
