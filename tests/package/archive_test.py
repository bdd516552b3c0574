"""The archive in a bare Debian: unpacked there, every part of it runs with what that system brings, and says the same.

Needs root, to enter that system's root folder. run.sh makes everything that the environment names here.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ARCHIVE, ROOT = pathlib.Path(os.environ["ROWTIDE_ARCHIVE"]), pathlib.Path(os.environ["ROWTIDE_ROOT"])
BUILT = pathlib.Path(os.environ["ROWTIDE_PROGRAM"])  # the program of a build for this machine
COMPILER, EMULATOR = os.environ["ROWTIDE_C_COMPILER"], os.environ["ROWTIDE_EMULATOR"]  # "": none is needed
LLAMA_BIN = os.environ["ROWTIDE_LLAMA_BIN"]  # llama.cpp's own programs; "": there are none for that machine
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROMPT = "To create a new table in the database, use the"
TOKENS, ROWS = "17,4,4093,2048", "0,1,77,689535"
ROW_BYTES, TABLE_BYTES = 34, 689_536 * 34  # tidepool's table is the last tensor of its file

# The kernel's files appear in that root for one command only.
ENTER = ["unshare", "--mount", "--", "sh", "-ec", 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"', str(ROOT)]


def ended(words, **variables):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": "/nowhere", **variables})


class ArchiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.here = pathlib.Path(tempfile.mkdtemp(prefix="rowtide-", dir=ROOT / "tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.here)
        subprocess.run(["tar", "xf", ARCHIVE, "-C", cls.here], check=True)
        cls.unpacked = cls.here / ARCHIVE.name.removesuffix(".tar.xz")
        cls.model = shutil.copy(SOURCE / "models" / "tidepool.gguf", cls.here)
        cls.emulator = []
        if EMULATOR:
            shutil.copy(EMULATOR, cls.here / "emulator")
            cls.emulator = [cls.there(cls.here / "emulator")]

    @classmethod
    def there(cls, path):
        """A path as that system sees it."""
        return "/" + str(pathlib.Path(path).relative_to(ROOT))

    def enter(self, program, *arguments, **variables):
        """What a program says there, on both its outputs. Paths are given as they are here."""
        words = [self.there(word) if str(word).startswith(str(ROOT)) else word for word in (program, *arguments)]
        process = ended([*ENTER, *self.emulator, *words], **variables)
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
        return process

    def both(self, *arguments):
        """The same command there and here, with the program of the build tree."""
        there = self.enter(self.unpacked / "bin" / "rowtide", *arguments).stdout
        here = ended([BUILT, *arguments])
        self.assertEqual(here.returncode, 0, here.stderr)
        return there, here.stdout.replace(str(ROOT) + "/", "/")

    def compile(self, source, *options):
        program = self.here / pathlib.Path(source).stem
        subprocess.run([COMPILER, source, *options, "-o", program], check=True)
        return program

    def test_the_checksum_is_the_archive_s(self):
        digest, name = pathlib.Path(f"{ARCHIVE}.sha256").read_text().split()
        self.assertEqual((digest, name), (hashlib.sha256(ARCHIVE.read_bytes()).hexdigest(), ARCHIVE.name))

    def test_the_commands_say_what_they_say_here(self):
        for words in [("--version",), ("--help",), ("inspect", self.model), ("inspect", self.model, "--json"),
                      ("address", self.model, "--tokens", TOKENS), ("rows", self.model, "--ids", ROWS)]:
            with self.subTest(words):
                there, here = self.both(*words)
                self.assertEqual(there, here)
                self.assertTrue(there)

    def test_rows_are_the_bytes_of_the_file(self):
        words = ["rows", self.model, "--ids", ROWS, "--format", "raw", "--json"]
        document = json.loads(self.enter(self.unpacked / "bin" / "rowtide", *words).stdout)
        content = pathlib.Path(self.model).read_bytes()[-TABLE_BYTES:]
        for row in document["rows"]:
            start = row["id"] * ROW_BYTES
            self.assertEqual(row["raw"], content[start:start + ROW_BYTES].hex())
        self.assertEqual([row["id"] for row in document["rows"]], [int(row) for row in ROWS.split(",")])

    def test_generate_writes_the_same_text(self):
        words = ["generate", "-m", self.model, "-p", PROMPT, "-n", "16", "--json"]
        there, here = map(json.loads, self.both(*words))
        plain = json.loads(self.enter(self.unpacked / "bin" / "rowtide", *words, "--no-store").stdout)
        self.assertEqual(there["text"], here["text"])
        self.assertEqual(there["tokens"], here["tokens"])
        self.assertEqual((there["text"], there["logits_sha256"]), (plain["text"], plain["logits_sha256"]))
        self.assertGreater(there["store"]["rows"], 0)

    def test_doctor_looks_at_the_machine(self):
        rowtide = self.unpacked / "bin" / "rowtide"
        if "  doctor " not in self.enter(rowtide, "--help").stdout:
            return
        process = ended([*ENTER, *self.emulator, self.there(rowtide), "doctor", "--json"])
        self.assertIn(process.returncode, (0, 1), process.stderr)
        self.assertEqual(json.loads(process.stdout)["ok"], process.returncode == 0)

    def test_ggml_takes_the_plug_in(self):
        host = self.compile(SOURCE / "tests" / "package" / "load_plugin.c")
        libraries = [path for path in (self.unpacked / "lib" / "rowtide").glob("libggml.*")]
        alone = shutil.copy(self.unpacked / "lib" / "librowtide-ggml.so", self.here)
        self.assertEqual(self.enter(host, libraries[0], alone).stdout, "Rowtide\n")

    def test_llama_cpp_s_own_program_is_served(self):
        if not LLAMA_BIN:
            return
        folder = self.here / "llama"
        shutil.copytree(LLAMA_BIN, folder, ignore=shutil.ignore_patterns("llama-server", "llama-bench"))
        words = [folder / "llama-completion", "-m", self.model, "-p", PROMPT, "-n", "16", "-t", "1", "-lzm", "on",
                 "--temp", "0", "-no-cnv", "--no-warmup"]
        plugin = self.there(self.unpacked / "lib" / "librowtide-ggml.so")
        for _ in range(3):  # the program may end before it has printed its last words, plug-in or not
            plain, served = self.enter(*words), self.enter(*words, GGML_BACKEND_PATH=plugin)
            if plain.stdout == served.stdout:
                break
        self.assertEqual(served.stdout, plain.stdout)
        self.assertIn("rowtide: serving per_layer_token_embd.weight", served.stderr)
        self.assertNotIn("rowtide:", plain.stderr)

    def test_a_c_program_runs_with_the_library_alone(self):
        settings = {**os.environ, "PKG_CONFIG_PATH": str(self.unpacked / "lib" / "pkgconfig")}
        settings.pop("PKG_CONFIG_SYSROOT_DIR", None)
        words = subprocess.run(["pkg-config", "--cflags", "--libs", "rowtide"], capture_output=True, text=True,
                               check=True, env=settings).stdout.split()
        program = self.compile(self.unpacked / "rows.c", *words, "-Wl,-rpath,$ORIGIN")
        library = pathlib.Path(os.path.realpath(self.unpacked / "lib" / "librowtide.so"))
        shutil.copy(library, self.here / ".".join(library.name.split(".")[:4]))  # without the patch: the name it bears
        lines = self.enter(program, self.model, *TOKENS.split(",")).stdout.splitlines()
        addressed = json.loads(ended([BUILT, "address", self.model, "--tokens", TOKENS, "--json"]).stdout)
        self.assertEqual([int(line.split()[0]) for line in lines], sum(addressed["tables"][0]["rows"], []))


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("the archive is tried in another root folder, and to enter that needs root")
    unittest.main()
