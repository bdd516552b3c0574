"""rowtide doctor: what it finds on this machine, under real limits, and with llama-servers of all kinds."""
import errno
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from program import DONE, MODEL, PROGRAM, ProgramTest, REFUSED, TABLE_BYTES, USAGE, gguf

NOT_SO = 1
REFUSE_IO_URING = pathlib.Path(os.environ["ROWTIDE_BUILD"]) / "refuse_io_uring"
LLAMA_SERVER = pathlib.Path(os.environ.get("ROWTIDE_LLAMA_BIN", "")) / "llama-server"
PLUGIN = pathlib.Path(os.environ["ROWTIDE_BUILD"]) / "librowtide-ggml.so"
NOWHERE = "/proc"  # a folder in which nothing can be measured, which saves a test two seconds
LEVELS = ["ok", "note", "warning", "problem"]
SYSTEM = ["kernel", "io_uring", "locked_memory", "open_files", "cpu"]
MEMORY = ["memory", "cgroup", "swap", "huge_pages", "shared_memory", "unified_memory"]
ENGINE = ["llama_server", "plug_in"]


class Doctor(ProgramTest):
    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.small = self.file("small.gguf", gguf())  # too small to measure by, so that a test takes no seconds
        self.environment = {"PATH": str(self.bin), "XDG_CACHE_HOME": str(self.folder / "cache"),
                            "TMPDIR": str(self.folder)}

    def examine(self, *arguments, launcher=(), code=None, environment=None, prepare=None, program=PROGRAM):
        """The findings by id, of one run with --json, whose other promises are checked."""
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("ROWTIDE_", "GGML_", "LLAMA_"))}
        variables |= self.environment | (environment or {})
        ended = subprocess.run([*launcher, program, "doctor", "--json", *map(str, arguments)], capture_output=True,
                               env=variables, preexec_fn=prepare)
        document = json.loads(ended.stdout)
        self.assertEqual(list(document), ["ok", "findings", "suggested_memory_bytes"], ended.stderr)
        self.assertGreaterEqual(document["suggested_memory_bytes"], 32 << 20)
        self.suggested = document["suggested_memory_bytes"]
        for finding in document["findings"]:
            self.assertEqual(list(finding), ["id", "level", "finding", "meaning", "fix"])
            self.assertIn(finding["level"], LEVELS)
            self.assertTrue(finding["finding"])
            if finding["level"] in ["warning", "problem"]:
                self.assertTrue(finding["meaning"] and finding["fix"], finding)
        found = {finding["id"]: finding for finding in document["findings"]}
        self.assertEqual(len(found), len(document["findings"]))
        problems = [finding for finding in found.values() if finding["level"] == "problem"]
        self.assertEqual(document["ok"], not problems)
        self.assertEqual(ended.returncode, NOT_SO if problems else DONE)
        if code is not None:
            self.assertEqual(ended.returncode, code, problems)
        self.assertNotIn(b"rowtide: ", ended.stderr)  # what the library logs is said by the findings
        return found

    def server(self, *, version="echo 'version: 7 (fake)' >&2", model="cat \"$2\"", devices=""):
        """A llama-server that answers each way of starting it with a line of shell."""
        path = self.bin / "llama-server"
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\ncase \"$1\" in\n--version) {version};;\n-m) {model};;\n"
                        f"--list-devices) {devices or ':'};;\nesac\n")
        path.chmod(0o755)

    def plug_in(self):
        """Stands for the plug-in with servers that only pretend to load it."""
        return {"GGML_BACKEND_PATH": str(self.file("plugin.so", b""))}

    # The machine as it is

    def test_a_checkpoint_is_only_read_and_judged(self):
        model = self.folder / "models" / "model.gguf"
        model.parent.mkdir()
        shutil.copyfile(MODEL, model)
        before = model.stat()
        found = self.examine(model, code=DONE)
        self.assertEqual(list(found)[:13], SYSTEM + MEMORY + ["file_system", "direct_io"])
        self.assertEqual(list(found)[-4:], ["checkpoint", "table_memory", *ENGINE])
        self.assertIn("a token's 16 rows take", found["drive"]["finding"])
        self.assertRegex(found["drive"]["finding"], r"one read \d+ us; [\d,]+ reads/s (at \d+ in flight|by 16 threads), ")
        self.assertIn("689,536 rows", found["checkpoint"]["finding"])
        if found["table_memory"]["finding"].startswith("the whole table fits"):
            self.assertEqual(self.suggested, (TABLE_BYTES // (1 << 20) + 1 + 64) << 20)
            self.assertIn(f"--memory {self.suggested >> 20}MiB", found["table_memory"]["meaning"])
        self.assertEqual((model.stat().st_mtime_ns, list(model.parent.iterdir())), (before.st_mtime_ns, [model]))

    def test_a_folder_is_a_place_for_models_and_is_left_as_it_was(self):
        place = self.folder / "place"
        place.mkdir()
        found = self.examine(place, code=DONE)
        self.assertIn("one read", found["drive"]["finding"])
        self.assertNotIn("checkpoint", found)
        self.assertEqual(list(place.iterdir()), [])

    def test_a_folder_that_holds_a_model_is_asked_to_open(self):
        for name in ["model.safetensors.index.json", "part.safetensors", "snapshots"]:
            place = self.folder / f"with-{name}"
            place.mkdir()
            (place / name).write_bytes(b"")
            found = self.examine(place, code=NOT_SO)
            self.assertEqual(found["checkpoint"]["level"], "problem")
            self.assertIn("no file to read", found["drive"]["finding"])

    def test_without_path_it_is_the_current_folder(self):
        place = self.folder / "place"
        place.mkdir()
        found = self.examine(prepare=lambda: os.chdir(place), code=DONE)
        self.assertTrue(found["file_system"]["finding"].startswith(". lies on "))

    def test_what_was_calibrated_is_known(self):
        model = self.folder / "model.gguf"
        shutil.copyfile(MODEL, model)
        self.assertEqual(self.examine(self.small).get("calibration", {"level": "note"})["level"], "note")
        figures = self.json("calibrate", model, environment=self.environment)
        if figures["kept"]:
            calibration = self.examine(self.small)["calibration"]
            self.assertEqual(calibration["level"], "ok")
            self.assertIn(f"{figures['best_depth']} reads in flight", calibration["finding"])

    # What is wrong with PATH

    def test_a_damaged_checkpoint_is_a_problem_in_the_words_of_the_error(self):
        damaged = self.file("damaged.gguf", MODEL.read_bytes()[:20_000_000])
        sentence = json.loads(self.run_program("inspect", damaged, "--json").output)["error"]["message"]
        found = self.examine(damaged, code=NOT_SO)
        self.assertEqual((found["checkpoint"]["level"], found["checkpoint"]["finding"]), ("problem", sentence))
        self.assertIn("download it again", found["checkpoint"]["fix"])

    def test_a_model_without_a_table_is_a_problem(self):
        found = self.examine(self.small, code=NOT_SO)
        self.assertIn("no n-gram table", found["checkpoint"]["finding"])
        self.assertIn("too small", found["drive"]["finding"])

    def test_what_is_no_regular_file_is_not_waited_for(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.assertEqual(self.examine(pipe, code=NOT_SO)["checkpoint"]["level"], "problem")
        self.assertEqual(self.examine("/dev/zero", code=NOT_SO)["checkpoint"]["level"], "problem")

    def test_a_path_that_is_not_there_is_refused(self):
        absent = self.folder / "absent.gguf"
        self.fail_with(REFUSED, "not_found", "doctor", absent, words=[absent])
        self.fail_with(USAGE, "usage", "doctor", self.folder, "second", words=["second"])

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no folder in memory")
    def test_a_folder_in_memory(self):
        model = pathlib.Path(f"/dev/shm/rowtide-doctor-{os.getpid()}.gguf")
        self.addCleanup(model.unlink, missing_ok=True)
        shutil.copyfile(MODEL, model)
        found = self.examine(model, code=DONE)
        self.assertEqual(found["file_system"]["level"], "note")
        self.assertIn("tmpfs", found["file_system"]["finding"])
        self.assertNotIn("calibration", found)
        self.assertTrue(found["drive"]["finding"].startswith("memory: one read"))

    # Real limits

    def test_io_uring_refused_by_a_filter(self):
        for error in ["EPERM", "ENOSYS"]:
            found = self.examine(MODEL, launcher=[REFUSE_IO_URING, error])
            self.assertEqual(found["io_uring"]["level"], "warning")
            self.assertIn("seccomp filter", found["io_uring"]["finding"])
            self.assertIn("--security-opt seccomp=", found["io_uring"]["fix"])
            self.assertIn("reads/s by 16 threads", found["drive"]["finding"])

    def as_nobody(self):
        """Gives up root, and with it the rights to pass over limits and permissions."""
        if os.getuid() == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)

    def examine_as_nobody(self, path, prepare=lambda: None):
        self.folder.chmod(0o755)
        try:
            return self.examine(path, prepare=lambda: (prepare(), self.as_nobody()))
        except PermissionError:
            self.skipTest("the program lies where another user cannot reach it")

    def test_a_limit_on_locked_memory(self):
        lower = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
        found = self.examine_as_nobody(self.small, prepare=lower)
        if found["io_uring"]["level"] != "ok":
            self.skipTest("no ring to pin a buffer with")
        self.assertEqual(found["locked_memory"]["level"], "note")
        self.assertIn("65536 bytes may be locked; a reader's buffer of 4.0 MiB cannot be pinned",
                      found["locked_memory"]["finding"])

    def test_a_file_that_may_not_be_read(self):
        self.small.chmod(0)
        found = self.examine_as_nobody(self.small)
        self.assertEqual(found["checkpoint"]["level"], "problem")
        for finding in [found["checkpoint"]["finding"], found["drive"]["finding"]]:
            self.assertIn("ermission denied", finding)

    def test_a_limit_on_open_files(self):
        lower = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        found = self.examine(self.small, prepare=lower)
        self.assertEqual(found["open_files"]["level"], "warning")
        self.assertIn("64", found["open_files"]["finding"])

    # llama-servers

    def test_no_server(self):
        found = self.examine(NOWHERE)
        self.assertEqual(found["llama_server"]["level"], "note")
        self.assertIn("no llama-server in PATH", found["llama_server"]["finding"])

    def test_a_server_that_takes_the_plug_in(self):
        self.server(model=f"exec {sys.executable} -c 'import os, sys; os.memfd_create(\"rowtide-status\"); "
                          "print(open(sys.argv[1]).read())' \"$2\"")
        found = self.examine(NOWHERE, environment=self.plug_in(), code=DONE)
        self.assertEqual((found["llama_server"]["level"], found["plug_in"]["level"]), ("ok", "ok"))
        self.assertIn("version: 7 (fake)", found["llama_server"]["finding"])

    def test_a_server_that_refuses_it(self):
        for reason, mends in [("incompatible API version: backend 3, host 9", "v0.6.0"),
                              ("rowtide: not serving: ROWTIDE_MODE is 'x'", "unset"), ("", "GGML_BACKEND_DL")]:
            self.server(model=f'echo "{reason}" >&2; cat "$2"', devices=f'echo "{reason}" >&2; echo "  CUDA0: gpu"')
            found = self.examine(NOWHERE, environment=self.plug_in(), code=NOT_SO)
            self.assertEqual(found["plug_in"]["level"], "problem")
            self.assertIn(reason, found["plug_in"]["finding"])
            self.assertIn(mends, found["plug_in"]["fix"])

    def test_a_server_that_takes_it_only_to_list_devices(self):
        self.server(devices="echo '  Rowtide: n-gram tables, read in place (0 MiB, 0 MiB free)'")
        found = self.examine(NOWHERE, environment=self.plug_in(), code=DONE)
        self.assertEqual(found["plug_in"]["level"], "warning")
        self.assertIn("-ot rowtide-never-matches=CPU", found["plug_in"]["fix"])
        self.server(model="exit 1", devices="echo '  Rowtide: n-gram tables, read in place (0 MiB, 0 MiB free)'")
        found = self.examine(NOWHERE, environment=self.plug_in(), code=DONE)
        self.assertEqual(found["plug_in"]["level"], "note")
        self.assertIn("ended with code 1", found["plug_in"]["meaning"])

    def test_a_server_that_crashes(self):
        self.server(model="kill -SEGV $$", devices="kill -SEGV $$")
        found = self.examine(NOWHERE, environment=self.plug_in(), code=NOT_SO)
        self.assertIn("was killed by signal 11", found["plug_in"]["finding"])
        self.server(version="echo libggml.so: cannot open shared object file >&2; exit 127", model="exit 127")
        found = self.examine(NOWHERE, environment=self.plug_in(), code=NOT_SO)
        self.assertEqual(found["llama_server"]["level"], "warning")
        self.assertIn("ended with code 127", found["llama_server"]["finding"])

    def test_a_server_that_hangs_is_ended(self):
        pid = self.folder / "pid"
        self.server(version=f"echo $$ > {pid}; trap '' TERM INT; sleep 1000 & wait; sleep 1000")
        begin = time.monotonic()
        found = self.examine(NOWHERE, environment=self.plug_in(), code=DONE)
        self.assertGreater(time.monotonic() - begin, 9)  # it was given its time
        self.assertIn("does not answer", found["llama_server"]["finding"])
        self.assertEqual(found["plug_in"]["level"], "warning")
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)

    def test_an_interrupt_ends_the_server_too(self):
        pid = self.folder / "pid"
        self.server(version=f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000")
        process = subprocess.Popen([PROGRAM, "doctor", NOWHERE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=os.environ | self.environment)
        self.wait_until(pid.exists)
        process.send_signal(signal.SIGINT)
        process.wait()
        server = pathlib.Path(f"/proc/{pid.read_text().strip()}/stat")
        self.wait_until(lambda: not server.exists() or ") Z " in server.read_text())

    def wait_until(self, so):
        for _ in range(1000):
            if so():
                return
            time.sleep(0.01)
        self.fail("waited ten seconds in vain")

    def test_the_plug_in_of_an_installed_program(self):
        installed = self.folder / "prefix" / "bin" / "rowtide"
        installed.parent.mkdir(parents=True)
        shutil.copy(PROGRAM, installed)
        plug_ins = [self.folder / "prefix" / folder / "librowtide-ggml.so" for folder in ["lib", "lib64"]]
        for plug_in in plug_ins:
            plug_in.parent.mkdir()
            plug_in.write_bytes(b"")
        found = self.examine(NOWHERE, program=installed)
        self.assertIn(found["plug_in"]["finding"].split()[0], map(str, plug_ins))

    def test_what_a_server_is_told(self):
        """The plug-in, a model that is a pipe, loopback; none of the user's own settings for servers."""
        told = self.folder / "told"
        self.server(version=f"env > {told}-version; echo version: 1", model=f'env > {told}; echo "$@" >> {told}; cat "$2"')
        own = {"LLAMA_ARG_HF_REPO": "somebody/model", "LLAMA_API_KEY": "secret"}
        self.examine(NOWHERE, environment=self.plug_in() | own)
        text = told.read_text()
        self.assertIn("GGML_BACKEND_PATH=" + self.plug_in()["GGML_BACKEND_PATH"], text)
        self.assertRegex(text, r"\n-m /proc/\d+/fd/\d+ --host 127\.0\.0\.1 --port 0\n")
        self.assertNotIn("LLAMA_", text)
        self.assertNotIn("GGML_BACKEND_PATH", pathlib.Path(f"{told}-version").read_text())
        self.assertEqual([path for path in self.folder.iterdir() if path.name.startswith("rowtide-doctor")], [])

    def test_a_plug_in_that_is_not_where_the_environment_says(self):
        self.server()
        found = self.examine(NOWHERE, environment={"GGML_BACKEND_PATH": "/no/such/plugin.so"}, code=NOT_SO)
        self.assertEqual(found["plug_in"]["level"], "problem")
        self.assertIn("/no/such/plugin.so", found["plug_in"]["finding"])

    @unittest.skipUnless(LLAMA_SERVER.is_file() and PLUGIN.is_file(), "no llama-server was built")
    def test_the_real_server_takes_the_real_plug_in(self):
        path = {"PATH": str(LLAMA_SERVER.parent)}
        found = self.examine(NOWHERE, environment=path, code=DONE)
        self.assertRegex(found["llama_server"]["finding"], r"llama-server, version: \S")
        self.assertEqual(found["plug_in"]["level"], "note")  # it has to be told of it
        self.assertEqual(found["plug_in"]["fix"], f"export GGML_BACKEND_PATH={PLUGIN}")
        found = self.examine(NOWHERE, environment=path | {"GGML_BACKEND_PATH": str(PLUGIN)}, code=DONE)
        self.assertEqual(found["plug_in"]["level"], "ok")
        found = self.examine(NOWHERE, environment=path | {"ROWTIDE_MODE": "fast"}, code=NOT_SO)
        self.assertIn("ROWTIDE_MODE is 'fast'", found["plug_in"]["finding"])

    # The page

    def page_on_terminal(self, columns, environment=None):
        terminal, program_side = pty.openpty()
        fcntl.ioctl(program_side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        with subprocess.Popen([PROGRAM, "doctor", self.small], stdout=program_side, stderr=subprocess.DEVNULL,
                              env=os.environ | self.environment | (environment or {})) as process:
            os.close(program_side)
            page = b""
            while True:
                try:
                    piece = os.read(terminal, 65536)
                except OSError as error:
                    self.assertEqual(error.errno, errno.EIO)
                    break
                if not piece:
                    break
                page += piece
        os.close(terminal)
        return page.decode().replace("\r\n", "\n")

    def test_the_page_says_what_the_document_says(self):
        ended = self.run_program("doctor", self.small, environment=self.environment)
        self.assertEqual(ended.code, NOT_SO)
        self.assertNotIn("\033", ended.output)
        lines = ended.output.splitlines()
        self.assertEqual([line for line in lines if re.fullmatch(r"[A-Zl]\S+", line)],
                         ["System", "Memory", "Storage", "Checkpoint", "llama.cpp"])
        found = self.examine(self.small)
        entries = [match for match in (re.match(r"  (\w+) +([a-z ]{14})  \S", line) for line in lines) if match]
        self.assertEqual([(e[1], e[2].strip().replace(" ", "_")) for e in entries],
                         [(finding["level"], finding["id"]) for finding in found.values()])
        self.assertEqual(ended.output.count("Mend: "), sum(bool(finding["fix"]) for finding in found.values()))
        self.assertRegex(lines[-1], r"^1 problem stands in the way(, \d+ warnings?)?\. Memory to begin with: --memory \d+MiB\.$")

    def test_colours_and_width_of_a_terminal(self):
        page = self.page_on_terminal(80)
        self.assertIn("\033[31mproblem\033[0m", page)
        plain = re.sub(r"\033\[\d+m", "", page)
        self.assertLessEqual(max(len(line) for line in plain.splitlines() if "/" not in line), 80)
        self.assertNotIn("\033", self.page_on_terminal(80, {"NO_COLOR": "1"}))


if __name__ == "__main__":
    unittest.main()
