"""Refuses what would not run elsewhere: looks through every ELF file of an unpacked archive.

    check_package.py FOLDER MACHINE [REFUSED...]    MACHINE as in uname -m; REFUSED: text that no file may hold

Silent if all is well; else one line a fault, and exit status 1.
"""
import pathlib
import re
import subprocess
import sys

# The newest versions of symbols that may be asked for: what Ubuntu 22.04 has, the oldest of the systems to run on.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
# Libraries that every system brings; all others are in the archive.
OF_THE_SYSTEM = re.compile(r"(libc|libm|libgcc_s|libstdc\+\+|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+")
OF_C_ONLY = re.compile(r"(libc|libm|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+")
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}

# What is loaded into programs of others: the names it exports, those it may expect of its host, no libstdc++ but its own.
STANDS_ALONE = {
    "librowtide-ggml.so": (re.compile("ggml_backend_init"), re.compile(r"ggml_\w+")),
    "librowtide.so": (re.compile(r"rowtide_\w+"), re.compile("(?!)")),
}
WEAK_OF_ALL = re.compile(r"_ITM_\w+|__gmon_start__|__cxa_(pure_virtual|finalize)")  # of the compiler; may stay without a definition


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


class Symbol:
    def __init__(self, words):
        name, _, version = words[7].partition("@")
        self.name, self.version = name, version.lstrip("@").split()[0] if version else ""
        self.defined, self.weak = words[6] != "UND", words[4] == "WEAK"


def symbols(path):
    for line in readelf("--dyn-syms", path).splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].rstrip(":").isdigit() and words[4] != "LOCAL":
            yield Symbol(words)


def dynamic(path):
    """{NEEDED: [...], RUNPATH: [...], ...}"""
    entries = {}
    for kind, value in re.findall(r"\((\w+)\)\s+.*\[(.*)\]", readelf("-d", path)):
        entries.setdefault(kind, []).append(value)
    return entries


def too_new(version):
    family, _, numbers = version.partition("_")
    if family not in NEWEST or not re.fullmatch(r"[\d.]+", numbers):
        return f"a version of {family or version} that is not known to be everywhere"
    return "" if tuple(map(int, numbers.split("."))) <= NEWEST[family] else "newer than the oldest system to run on has"


def faults_of_symbols(path, alone):
    exported, expected = alone or (None, None)
    for symbol in symbols(path):
        if symbol.defined:
            if exported and symbol.name and not exported.fullmatch(symbol.name):
                yield f"exports {symbol.name}"
        elif symbol.version:
            why = too_new(symbol.version)
            if why:
                yield f"needs {symbol.name}@{symbol.version}, {why}"
        elif expected and symbol.name and not expected.fullmatch(symbol.name) and not (
                symbol.weak and WEAK_OF_ALL.fullmatch(symbol.name)):
            yield f"expects {symbol.name} of the program that loads it"


def faults_of_libraries(path, root, alone):
    entries = dynamic(path)
    for value in entries.get("RPATH", []):
        yield f"has an RPATH ({value}), which overrides LD_LIBRARY_PATH"
    folders = [folder for value in entries.get("RUNPATH", []) for folder in value.split(":") if folder]
    for folder in folders:
        if not re.match(r"\$ORIGIN(/|$)", folder):
            yield f"looks for libraries in {folder}"
    places = [pathlib.Path(folder.replace("$ORIGIN", str(path.parent))).resolve() for folder in folders]
    for name in entries.get("NEEDED", []):
        if (OF_C_ONLY if alone else OF_THE_SYSTEM).fullmatch(name):
            continue
        found = [place / name for place in places if (place / name).exists()]
        if alone or not found or not found[0].resolve().is_relative_to(root):
            yield f"needs {name}, which neither it nor the archive brings"


def faults_of_elf(path, root, machine):
    if f"Machine:                           {MACHINES[machine]}" not in readelf("-h", path):
        yield f"is not for {machine}"
        return
    alone = next((rule for name, rule in STANDS_ALONE.items() if path.name.startswith(name)), None)
    yield from faults_of_symbols(path, alone)
    yield from faults_of_libraries(path, root, alone)
    if re.search(r"GNU_STACK.* RWE ", readelf("-l", path)):
        yield "wants an executable stack"


def faults(root, machine, refused=()):
    """Every fault under `root`, as "path: what"."""
    root, found = pathlib.Path(root).resolve(), []
    for path in sorted(root.rglob("*")):
        wrong = []
        if path.is_symlink():
            if not path.exists() or not path.resolve().is_relative_to(root):
                wrong = ["leads out of the archive"]
        elif path.is_file():
            content = path.read_bytes()
            wrong = [f"holds the text {text}" for text in refused if text.encode() in content]
            if content.startswith(b"\x7fELF"):
                wrong += faults_of_elf(path, root, machine)
        found += [f"{path.relative_to(root)}: {fault}" for fault in wrong]
    return found


if __name__ == "__main__":
    lines = faults(sys.argv[1], sys.argv[2], sys.argv[3:])
    print("".join(line + "\n" for line in lines), end="")
    sys.exit(1 if lines else 0)
