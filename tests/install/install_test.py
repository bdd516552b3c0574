"""cmake --install: what is installed works where it is moved to, and outside programs build and run against it."""
import json
import os
import pathlib
import shlex
import shutil
import struct
import subprocess
import tempfile
import unittest

SOURCE, BUILD = pathlib.Path(os.environ["ROWTIDE_SOURCE"]), pathlib.Path(os.environ["ROWTIDE_BUILD"])
COMPILER = os.environ["ROWTIDE_C_COMPILER"]
LIBRARY_FOLDER, HAS_LLAMA = os.environ["ROWTIDE_LIBDIR"], os.environ["ROWTIDE_HAS_LLAMA"] == "1"
MODEL = SOURCE / "models" / "tidepool.gguf"
TOKENS = ["17", "4", "4093", "2048", "17", "4"]  # 4093 ends a text
ROW_BYTES, ROWS = 34, 689_536
TABLE_OFFSET = MODEL.stat().st_size - ROWS * ROW_BYTES  # the table is the last tensor of the file
PREFIX = "/opt/rowtide"


def run(*command, **variables):
    """Standard output of a command that knows nothing of the build tree."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "XDG_CACHE_HOME") if key in os.environ}
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=kept | variables)
    if ended.returncode != 0:
        raise AssertionError(f"{command} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def stored_row(row):
    with MODEL.open("rb") as file:
        file.seek(TABLE_OFFSET + row * ROW_BYTES)
        return file.read(ROW_BYTES)


def decoded(stored):
    """Numbers of a q8_0 row: a binary16 scale and 32 signed bytes."""
    scale, *values = struct.unpack("<e32b", stored)
    return [scale * value for value in values]


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rowtide-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run("cmake", "--install", BUILD, "--prefix", PREFIX, DESTDIR=str(cls.folder / "staged"))
        cls.installed = cls.folder / "moved" / "here"
        cls.installed.parent.mkdir()
        (cls.folder / "staged" / PREFIX.lstrip("/")).rename(cls.installed)
        cls.libraries = cls.installed / LIBRARY_FOLDER
        cls.program = cls.installed / "bin" / "rowtide"
        words = run(cls.program, "address", MODEL, "--tokens", ",".join(TOKENS), "--json")
        cls.ids = sum(json.loads(words)["tables"][0]["rows"], [])

    def pkg_config(self, *options):
        return shlex.split(run("pkg-config", *options, "rowtide", PKG_CONFIG_PATH=str(self.libraries / "pkgconfig")))

    def check_bytes(self, output):
        self.assertEqual(output.splitlines(), [f"{row} {stored_row(row).hex()}" for row in self.ids])

    def test_the_program_stands_alone(self):
        self.assertEqual(run(self.program, "--version"), run(BUILD / "rowtide", "--version"))
        self.assertEqual(len(self.ids), 16 * len(TOKENS))
        if HAS_LLAMA:
            words = ["generate", "-m", MODEL, "-p", "To create a new table", "-n", "4"]
            self.assertEqual(run(self.program, *words), run(BUILD / "rowtide", *words))
            needed = run("ldd", self.program).split()
            loaded = [pathlib.Path(word).resolve().parent for word in needed if "/libllama" in word]
            self.assertEqual(loaded, [(self.libraries / "rowtide").resolve()])

    def test_a_program_in_c_by_pkg_config(self):
        self.assertEqual(run("pkg-config", "--modversion", "rowtide",
                             PKG_CONFIG_PATH=str(self.libraries / "pkgconfig")).strip(),
                         run(self.program, "--version").split()[1])
        program = self.folder / "rows_c"
        run(COMPILER, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", SOURCE / "examples/c/rows.c",
            *self.pkg_config("--cflags", "--libs"), "-o", program)
        self.check_bytes(run(program, MODEL, *TOKENS, LD_LIBRARY_PATH=str(self.libraries)))
        needed = run("objdump", "-p", program)
        self.assertIn("librowtide.so.0.1", needed)
        self.assertNotIn("libstdc++", needed)

    def test_a_program_in_c_with_the_static_library(self):
        program = self.folder / "rows_static"
        libraries = [word.replace("-lrowtide", "-l:librowtide.a") for word in self.pkg_config("--static", "--libs")]
        run(COMPILER, SOURCE / "examples/c/rows.c", *self.pkg_config("--cflags"), *libraries, "-o", program)
        self.check_bytes(run(program, MODEL, *TOKENS))
        self.assertNotIn("librowtide", run("objdump", "-p", program))

    def test_programs_in_c_and_cxx_by_cmake(self):
        build = self.folder / "build"
        run("cmake", "-G", "Ninja", "-S", SOURCE / "examples/cxx", "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
            f"-DCMAKE_PREFIX_PATH={self.installed}")
        run("cmake", "--build", build)
        self.check_bytes(run(build / "rows_c", MODEL, *TOKENS))
        lines = [line.split() for line in run(build / "rows", MODEL, *TOKENS).splitlines()]
        self.assertEqual([int(line[0]) for line in lines], self.ids)
        for row, line in zip(self.ids, lines):
            numbers = [struct.unpack("<f", struct.pack("<f", float(word)))[0] for word in line[1:]]
            self.assertEqual(numbers, decoded(stored_row(row)))

    def test_errors_and_versions_reach_a_c_program(self):
        program = self.folder / "rows_other"
        text = (SOURCE / "examples/c/rows.c").read_text()
        run(COMPILER, SOURCE / "examples/c/rows.c", *self.pkg_config("--cflags", "--libs"), "-o", program)
        ended = subprocess.run([program, "/nowhere/model.gguf", "1"], capture_output=True, text=True,
                               env={"LD_LIBRARY_PATH": str(self.libraries)})
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, "error 2: .*/nowhere/model.gguf")

        other = self.folder / "other.c"
        other.write_text(text.replace("int main(", "#undef ROWTIDE_VERSION\n#define ROWTIDE_VERSION 9999\nint main(", 1))
        run(COMPILER, other, *self.pkg_config("--cflags", "--libs"), "-o", program)
        ended = subprocess.run([program, MODEL, "1"], capture_output=True, text=True,
                               env={"LD_LIBRARY_PATH": str(self.libraries)})
        self.assertEqual(ended.returncode, 1)
        self.assertIn("header of version 9999", ended.stderr)

    def test_nothing_knows_where_it_was_installed(self):
        for path in self.installed.rglob("*"):
            if path.is_file():
                self.assertNotIn(PREFIX.encode(), path.read_bytes(), path)
            elif path.is_symlink():
                self.assertTrue(path.exists(), f"{path} leads nowhere")


if __name__ == "__main__":
    unittest.main()
