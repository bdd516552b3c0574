"""scripts/check_package.py: finds nothing in files that run elsewhere, and each fault that is planted."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ["ROWTIDE_SOURCE"])
COMPILER = os.environ["ROWTIDE_C_COMPILER"]
sys.path.insert(0, str(SOURCE / "scripts"))
import check_package

MACHINE, OTHER = ("x86_64", "aarch64") if os.uname().machine == "x86_64" else ("aarch64", "x86_64")
INIT = "int ggml_backend_init(void) { return 0; }"


class CheckPackage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rowtide-package-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "rowtide")
        (self.root / "lib").mkdir(parents=True)

    def library(self, name, code, *options):
        path = self.root / "lib" / name
        subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", path, *map(str, options)],
                       input=code.encode(), check=True)
        return path

    def check(self, *words, machine=MACHINE, refused=()):
        """One fault with these words in it is found, or none if none are given."""
        found = check_package.faults(self.root, machine, refused)
        self.assertEqual(len(found), 1 if words else 0, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_finds_nothing_where_nothing_is_wrong(self):
        self.library("libllama.so", "#include <stdio.h>\nint llama(void) { return puts(\"\"); }")
        self.library("libmore.so", "int llama(void); int more(void) { return llama(); }", self.root / "lib/libllama.so",
                     "-Wl,-soname,libmore.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN")
        library = self.library("libllama.so.1", "int llama(void) { return 1; }")
        (self.root / "lib" / "libllama.so").unlink()
        (self.root / "lib" / "libllama.so").symlink_to(library.name)
        self.library("librowtide-ggml.so", "int ggml_row_size(void);\n" + INIT.replace("0", "ggml_row_size()"))
        self.library("librowtide.so.0.1", "int rowtide_version(void) { return 100; }")
        (self.root / "README.md").write_text("as it says in the folder")
        self.check(refused=["/of/the/build"])

    def test_symbols_that_are_too_new(self):
        self.library("libllama.so", "#include <stdio.h>\nint llama(void) { return puts(\"\"); }")
        with unittest.mock.patch.dict(check_package.NEWEST, GLIBC=(2, 2)):
            found = check_package.faults(self.root, MACHINE)
        self.assertIn("puts@GLIBC_2.", "".join(found))
        self.assertEqual(check_package.too_new("GLIBC_2.35") + check_package.too_new("GLIBC_2.4"), "")
        for version in ("GLIBC_2.36", "GLIBC_3", "GLIBCXX_3.4.31", "CXXABI_1.3.14", "GOMP_4.0", "GLIBC_PRIVATE"):
            self.assertTrue(check_package.too_new(version), version)

    def test_a_library_that_the_archive_does_not_bring(self):
        self.library("libother.so", "int other(void) { return 1; }", "-Wl,-soname,libother.so.4")
        self.library("libllama.so", "int other(void); int llama(void) { return other(); }", self.root / "lib/libother.so")
        self.check("libllama.so: needs libother.so.4")

    def test_ways_out_of_the_archive(self):
        self.library("libllama.so", "int llama(void) { return 1; }", "-Wl,-rpath,/opt/build/lib")
        self.check("looks for libraries in /opt/build/lib")
        self.library("libllama.so", "int llama(void) { return 1; }", "-Wl,--disable-new-dtags,-rpath,$ORIGIN")
        self.check("has an RPATH ($ORIGIN)")
        (self.root / "lib" / "libllama.so").unlink()
        (self.root / "lib" / "libc.so").symlink_to("/etc/hostname")
        self.check("lib/libc.so: leads out")

    def test_what_is_loaded_by_others_stands_alone(self):
        self.library("librowtide-ggml.so", INIT + "int helper(void) { return 1; }")
        self.check("exports helper")
        self.library("librowtide-ggml.so", "int helper(void);\n" + INIT.replace("0", "helper()"))
        self.check("expects helper")
        self.library("librowtide-ggml.so", INIT, "-Wl,--no-as-needed", "-lgcc_s")
        self.check("needs libgcc_s.so.1")

    def test_other_machines_stacks_and_texts(self):
        self.library("libllama.so", "const char llama[] = \"/of/the/build/x\";")
        self.check("is not for", machine=OTHER)
        self.check("holds the text /of/the/build", refused=["/of/the/build"])
        self.library("libllama.so", "int llama(void) { return 1; }", "-z", "execstack")
        self.check("executable stack")


if __name__ == "__main__":
    unittest.main()
