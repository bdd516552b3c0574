#!/bin/bash
# style.sh format   rewrites the C++ files in the project's format
# style.sh check    fails if that would change one
# style.sh lint     clang-tidy over what the last `make build` or `make test` compiled, of src/ and integrations/
# The tools' versions are setup.sh's.
source "$(dirname "$0")/lib.sh"
cd "$root"
tools=$cache/style/bin
mapfile -t files < <(git ls-files '*.cc' '*.h' '*.c')

case "${1:-}" in
  format) "$tools/clang-format" -i "${files[@]}" ;;
  check) "$tools/clang-format" --dry-run --Werror "${files[@]}" ;;
  lint)
    [ -f build/compile_commands.json ] || fail "clang-tidy needs a build to look at: run make test first"
    "$tools/python" "$tools/run-clang-tidy.py" -clang-tidy-binary "$tools/clang-tidy" -p build -quiet "/(src|integrations)/"
    ;;
  *) fail "usage: $0 format | check | lint" ;;
esac
