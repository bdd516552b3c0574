"""Rules that a machine can keep: which room may include which, how long a file may be, and what a text must not hold.

    tidy_test.py REPOSITORY    checks that every rule finds what is planted against it, then the repository
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

# What a room may include, besides itself (docs/architecture.md). Public headers belong to the room of their subject.
BELOW = {
    "base": [],
    "address": ["base"],
    "io": ["base"],
    "checkpoint": ["base", "address", "io"],
    "table": ["base", "address", "io", "checkpoint"],
    "cache": ["base", "address", "io", "checkpoint", "table"],
    "store": ["base", "address", "io", "checkpoint", "table", "cache"],
    "sizing": ["base", "address", "io", "checkpoint", "table", "cache", "store"],
    "loadgen": ["base"],
    "cli": ["base", "address", "io", "checkpoint", "table", "cache", "store", "sizing", "loadgen", "integrations"],
    "integrations": [],  # clients of the public headers
}
PUBLIC = {
    "result.h": "base", "log.h": "base", "byte_size.h": "base", "file_place.h": "io", "addressing.h": "address",
    "row_format.h": "table", "table.h": "table", "checkpoint.h": "table", "store.h": "store", "rowtide.h": "store",
}
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')

MOST_LINES = 600
CODE = {".cc", ".h", ".c", ".py", ".sh"}

# Spelled in parts, so that this file keeps its own rules.
REFUSED = [
    ("leftover marker", re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")),
    ("leftover marker", re.compile("place" + "holder|not " + "implemented", re.IGNORECASE)),
    ("path of one machine", re.compile(r"(?<![\w.$}])/(?:work|home|root|Users|mnt)/\w")),
    ("host of a registry", re.compile(r"\b(?:npm" + r"js|py" + r"pi|python" + r"hosted|deb" + r"ian|crates|golang)\.(?:org|com|io)\b")),
    ("tab", re.compile("\t")),
    ("space at the end", re.compile(r"[ \r]$")),
]
MAY_HOLD_TABS = {"Makefile"}
SKIPPED_FOLDERS = {".git", ".cache", "__pycache__", "models", "golden", "corpus"}
SKIPPED_FILES = {"LICENSE", "compile_commands.json"}


def room_of(parts):
    """The room that a file belongs to, from its path's parts; None outside the rooms."""
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] == "include":
        return PUBLIC.get(parts[-1], f"none: list {parts[-1]} in PUBLIC of tidy_test.py")
    return "integrations" if parts[0] == "integrations" else None


def include_fault(parts, included):
    """What is wrong with a file at `parts` including `included`, or None."""
    room, target = room_of(parts), included.split("/")
    if room is None or len(target) == 1:
        return None
    if room not in BELOW:
        return f"belongs to no room ({room})"
    if target[0] == "rowtide":
        owner = PUBLIC.get(target[1])
        if owner is None:
            return f"includes {included}, which belongs to no room"
        allowed = room == "integrations" or owner == room or owner in BELOW[room]
    elif parts[0] == "include":
        return f"is public and includes {included}, which is not"
    else:
        owner = "integrations" if target[0] == "ggml" else target[0]
        allowed = owner == room or owner in BELOW[room]
    return None if allowed else f"includes {included}: {room} lies below {owner}"


def faults_of_file(path, parts):
    content = path.read_bytes()
    if b"\0" in content:
        return
    lines = content.decode(errors="replace").split("\n")
    if path.suffix in CODE and len(lines) - 1 > MOST_LINES:
        yield f"has {len(lines) - 1} lines, more than {MOST_LINES}"
    for number, line in enumerate(lines, 1):
        for name, pattern in REFUSED:
            if pattern.search(line) and not (name == "tab" and path.name in MAY_HOLD_TABS):
                yield f"line {number}: {name}: {line.strip()[:80]}"
        included = INCLUDE.match(line)
        fault = included and include_fault(parts, included.group(1))
        if fault:
            yield f"line {number}: {fault}"


# A function of a test file, at the start of a line. The files of a room are compiled together: a call could silently
# become one of another file's function of the same name.
TEST_FUNCTION = re.compile(r"^(?!(?:return|else|using|template|namespace|class|struct|enum|TEST|RC_)\b)[A-Za-z_][\w:<>,\s*&]*[\s*&]([a-z_]\w*)\(",
                           re.MULTILINE)


def functions_twice(paths_by_room):
    """Of each room of tests, the functions that two of its files have."""
    for paths in paths_by_room.values():
        first = {}
        for path in paths:
            for name in set(TEST_FUNCTION.findall(path.read_text(errors="replace"))):
                if first.setdefault(name, path) != path:
                    yield path, f"has {name}() as {first[name].name} has: they are compiled together"


def faults(root):
    """Every fault under `root`, as "path: what"."""
    found = []
    tests = {}
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(n for n in subfolders if n not in SKIPPED_FOLDERS and not n.startswith("build"))
        for name in sorted(set(names) - SKIPPED_FILES):
            path = pathlib.Path(folder, name)
            relative = path.relative_to(root)
            found += [f"{relative}: {fault}" for fault in faults_of_file(path, relative.parts)]
            if relative.parts[0] == "tests" and name.endswith("_test.cc"):
                tests.setdefault(relative.parent, []).append(path)
    return found + [f"{path.relative_to(root)}: {fault}" for path, fault in functions_twice(tests)]


CLEAN = {
    "src/table/good.cc": '#include "rowtide/table.h"\n#include "checkpoint/gguf.h"\n#include <vector>\n',
    "src/cli/good.cc": '#include "store/batch.h"\n#include "ggml/plugin.h"\n',
    "include/rowtide/store.h": '#include "rowtide/table.h"\n',
    "integrations/ggml/good.cc": '#include "rowtide/store.h"\n#include "ggml/plugin.h"\n#include "ggml.h"\n',
    "Makefile": "all:\n\ttrue\n",
    "tests/io/good_test.cc": '#include "store/batch.h"\n// reads /proc/self/maps and /dev/shm/homework/x\nint once(int x) {\n',
}
# Each alone must be found, as (file, content, words of the finding).
PLANTED = [
    ("src/base/bad.cc", '#include "io/file.h"\n', "base lies below io"),
    ("src/address/bad.cc", '#include "io/file.h"\n', "address lies below io"),
    ("src/io/bad.h", '#include "address/primes.h"\n', "io lies below address"),
    ("src/checkpoint/bad.cc", '#include "rowtide/checkpoint.h"\n', "checkpoint lies below table"),
    ("src/store/deep/bad.cc", '  #  include "cli/command.h"\n', "store lies below cli"),
    ("src/store/bad.cc", '#include "ggml/plugin.h"\n', "store lies below integrations"),
    ("src/loadgen/bad.cc", '#include "io/file.h"\n', "loadgen lies below io"),
    ("src/attic/bad.cc", '#include "base/error.h"\n', "belongs to no room"),
    ("include/rowtide/table.h", '#include "rowtide/store.h"\n', "table lies below store"),
    ("include/rowtide/log.h", '#include "base/error.h"\n', "is public"),
    ("include/rowtide/new.h", '#include "rowtide/table.h"\n', "list new.h in PUBLIC"),
    ("integrations/ggml/bad.cc", '#include "base/error.h"\n', "integrations lies below base"),
    ("bench/long.cc", "int x;\n" * (MOST_LINES + 1), "601 lines"),
    ("docs/a.md", "write this: TO" + "DO\n", "leftover marker"),
    ("src/io/a.h", "// FIX" + "ME later\n", "leftover marker"),
    ("CMakeLists.txt", "# HA" + "CK\n", "leftover marker"),
    ("src/io/b.h", '// a Place' + 'holder\n', "leftover marker"),
    ("src/io/c.cc", 'return "not ' + 'implemented";\n', "leftover marker"),
    ("tests/io/a_test.cc", 'open("/ho' + 'me/me/model.gguf");\n', "path of one machine"),
    ("docs/b.md", "fetched from https://regis" + "try.npm" + "js.org/x\n", "host of a registry"),
    ("src/io/d.cc", "\tint x;\n", "tab"),
    ("tests/io/second_test.cc", "const std::vector<int>& once(long x = 0) {\n", "compiled together"),
    ("README.md", "words \n", "space at the end"),
]


def tree(files):
    folder = tempfile.TemporaryDirectory(prefix="rowtide-tidy-")
    for name, content in files.items():
        path = pathlib.Path(folder.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


class TidyTest(unittest.TestCase):
    def test_nothing_is_found_where_nothing_is_wrong(self):
        with tree(CLEAN) as folder:
            self.assertEqual(faults(folder), [])

    def test_each_planted_fault_is_found(self):
        for name, content, words in PLANTED:
            with self.subTest(name), tree({**CLEAN, name: content}) as folder:
                found = faults(folder)
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(name + ": ") and words in found[0], found)

    def test_repository(self):
        found = faults(REPOSITORY)
        self.assertEqual(found, [], "\n" + "\n".join(found))


if __name__ == "__main__":
    REPOSITORY = pathlib.Path(sys.argv.pop(1)).resolve()
    assert (REPOSITORY / "CMakeLists.txt").exists(), f"{REPOSITORY} is not the repository"
    unittest.main()
