"""rowtide serve: llama-server planned, started, watched and stopped. The real one, and others that misbehave."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from program import FAILED, MODEL, PROGRAM, REFUSED, TABLE, USAGE, ProgramTest

NOT_SO = 1
DONE = 0
LLAMA_SERVER = pathlib.Path(os.environ.get("ROWTIDE_LLAMA_BIN", "/nonexistent")) / "llama-server"
PLUGIN = PROGRAM.parent / "librowtide-ggml.so"
PATIENCE = 60  # seconds; a busy machine takes its time

# A server that does what the test at hand asks of it, by the names in FAKE: `sign` it has taken the plug-in, `ready`
# /health says so, `stubborn` it does not stop, `dies` it ends before it answers, `falls` once it has.
FAKE = r'''#!%s -B
import http.server, json, os, signal, sys, threading, time
asked = os.environ["FAKE"].split()
json.dump({"pid": os.getpid(), "arguments": sys.argv[1:], "environment": dict(os.environ)}, open(os.environ["TOLD"], "w"))
print("one line of the log", flush=True)
if "dies" in asked:
    print("the reason why it does not start", flush=True)
    sys.exit(9)
if "sign" in asked:
    sign = os.memfd_create("rowtide-status")
    os.write(sign, json.dumps({"plugin": "rowtide", "tables": [{"name": "its_table"}]}).encode())
if "stubborn" in asked:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: print("no", flush=True))
else:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if "ready" in asked else 503)
        self.end_headers()
        if "falls" in asked:
            threading.Timer(0.5, os._exit, [7]).start()
    def log_message(self, *_):
        pass

port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
while True:
    time.sleep(1)
''' % sys.executable


def is_alive(pid):
    """Whether the process runs; one that is dead and not yet waited for does not."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"in {PATIENCE} s it did not come to it that {what}")


class Serving:
    """`rowtide serve`, running."""

    def __init__(self, test, *arguments, environment):
        self.test = test
        self.output = tempfile.TemporaryFile()
        self.messages = tempfile.TemporaryFile()
        variables = {name: value for name, value in os.environ.items() if not name.startswith("ROWTIDE_")}
        self.process = subprocess.Popen([PROGRAM, "serve", *map(str, arguments)], env=variables | environment,
                                        stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.messages)
        test.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.output.close()
        self.messages.close()

    @staticmethod
    def text(file):
        return os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")

    def printed(self):
        return self.text(self.output)

    def said(self):
        return self.text(self.messages)

    def wait_for(self, words):
        until(lambda: words in self.printed() or self.process.poll() is not None, f"'{words}' is printed")
        self.test.assertIn(words, self.printed(), self.said())

    def document(self):
        until(lambda: self.process.poll() is not None or self.printed().rstrip().endswith("}"), "it is ready")
        return json.loads(self.printed())

    def stop(self, number):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


class ServeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.told = self.folder / "told"
        self.environment = {"PATH": str(self.folder), "TOLD": str(self.told), "HOME": str(self.folder)}
        plugin = self.file("plugin.so", "")
        self.environment["GGML_BACKEND_PATH"] = str(plugin)

    def fake(self, asked):
        server = self.file("llama-server", FAKE)
        server.chmod(0o755)
        self.environment["FAKE"] = asked

    def serve(self, *arguments, environment=None, model=MODEL):
        return Serving(self, model, "--port", "0", "--context", "1024", *arguments,
                       environment=self.environment | (environment or {}))

    def story(self):
        until(lambda: self.told.is_file() and self.told.read_text().endswith("}"), "the server was started")
        return json.loads(self.told.read_text())

    # What is asked of it

    def test_the_server_is_started_as_planned(self):
        self.fake("sign ready")
        serving = self.serve("--concurrency", "2", "--placement", "nvme", "--memory", "32MiB", "--json", "--", "--jinja",
                             environment={"ROWTIDE_MODE": "resident", "ROWTIDE_TABLES": "*", "LLAMA_ARG_THREADS": "3"})
        document = serving.document()
        self.assertRegex(document["url"], r"^http://127\.0\.0\.1:\d+$")
        self.assertEqual(document["tables"], ["its_table"])
        self.assertTrue(document["fits"])
        story = self.story()
        self.assertEqual(document["pid"], story["pid"])
        self.assertEqual(document["arguments"], story["arguments"])
        given = story["arguments"]
        for option, value in {"-m": str(MODEL), "-c": "2048", "-np": "2", "--host": "127.0.0.1",
                              "--port": document["url"].rsplit(":", 1)[1]}.items():
            self.assertEqual(given[given.index(option) + 1], value)
        self.assertEqual(given[-1], "--jinja")
        self.assertEqual(story["environment"]["ROWTIDE_MEMORY"], "32MiB")  # the least that the plug-in takes
        self.assertNotIn("ROWTIDE_MODE", story["environment"])  # it would contradict the plan
        self.assertEqual(story["environment"]["ROWTIDE_TABLES"], "*")
        self.assertEqual(story["environment"]["LLAMA_ARG_THREADS"], "3")
        self.assertEqual(story["environment"]["GGML_BACKEND_PATH"], str(self.folder / "plugin.so"))
        self.assertEqual(serving.stop(signal.SIGTERM), DONE)
        self.assertFalse(is_alive(story["pid"]))

    def test_the_printed_command_can_be_typed(self):
        self.fake("sign ready")
        serving = self.serve()
        serving.wait_for("llama-server listens on http://127.0.0.1:")
        self.assertIn("the plug-in serves its_table. Ctrl-C stops it.", serving.printed())
        self.assertIn("one line of the log", serving.said())
        first = self.story()
        self.assertEqual(serving.stop(signal.SIGINT), DONE)
        command = re.search(r"^GGML_BACKEND_PATH=.*?(?=^$)", serving.said(), re.MULTILINE | re.DOTALL)[0]
        self.told.unlink()
        typed = subprocess.Popen(["/bin/sh", "-c", "exec /usr/bin/env " + command], env=self.environment,
                                 stdout=subprocess.DEVNULL)
        try:
            again = self.story()
        finally:
            typed.terminate()
            typed.wait(PATIENCE)
        self.assertEqual(again["arguments"], first["arguments"])

    def test_what_cannot_be_asked(self):
        self.fake("sign ready")
        for arguments, words in [(("--port", "70000"), ["--port"]), (("--host", "example"), ["--host", "example"]),
                                 (("--host", "192.0.2.7"), ["--host", "192.0.2.7", "127.0.0.1"]),
                                 (("--tp", "0"), ["--tp"]), (("--engine", "vllm"), ["--engine"]),
                                 (("--context", "1000000000"), ["--context"]),
                                 (("--llama-server", "/no/such/server"), ["--llama-server", "/no/such/server"])]:
            with self.subTest(arguments=arguments):
                self.fail_with(USAGE, "usage", "serve", MODEL, *arguments, words=words, environment=self.environment)
        self.fail_with(REFUSED, "not_found", "serve", "/no/such/model.gguf", words=["/no/such/model.gguf"],
                       environment=self.environment)
        self.assertFalse(self.told.exists(), "nothing is started for what is refused")

    def test_a_plan_that_cannot_run_or_does_not_fit_is_not_started(self):
        self.fake("sign ready")
        self.fail_with(REFUSED, "unsupported", "serve", MODEL, "--kv", "q8_0", words=["quantised", "f16"],
                       environment=self.environment)
        self.fail_with(NOT_SO, "does_not_fit", "serve", MODEL, "--visible", "64MiB", words=["does not fit", "--anyway"],
                       environment=self.environment)
        self.assertFalse(self.told.exists())
        serving = self.serve("--visible", "64MiB", "--anyway", "--json")
        self.assertFalse(serving.document()["fits"])

    # What goes wrong

    def test_without_llama_server(self):
        message = self.fail_with(NOT_SO, "not_found", "serve", MODEL, "--port", "0", environment=self.environment,
                                 words=["no llama-server in PATH", "v0.5.0", "--llama-server"])
        self.assertIn("beside this program", message)

    def test_llama_server_by_name(self):
        self.fake("sign ready")
        moved = (self.folder / "llama-server").rename(self.folder / "another name")
        serving = self.serve("--llama-server", moved, "--json")
        self.assertEqual(serving.document()["llama_server"], str(moved))

    def test_without_the_plug_in(self):
        self.fake("sign ready")
        self.environment["GGML_BACKEND_PATH"] = "/no/such/plugin.so"
        self.fail_with(NOT_SO, "not_served", "serve", MODEL, "--port", "0", environment=self.environment,
                       words=["/no/such/plugin.so", "GGML_BACKEND_PATH"])

    def test_a_server_that_goes_on_without_the_plug_in_is_stopped(self):
        for asked in ("ready", ""):  # also before it has loaded a model of many GiB
            with self.subTest(asked=asked):
                self.fake(asked)
                self.fail_with(NOT_SO, "not_served", "serve", MODEL, "--port", "0", environment=self.environment,
                               words=["goes on without", "plugin.so", "GGML_BACKEND_DL=ON"])
                self.assertFalse(is_alive(self.story()["pid"]))

    def test_a_server_that_ends_while_it_starts(self):
        self.fake("dies")
        self.fail_with(FAILED, "llama", "serve", MODEL, "--port", "0", environment=self.environment,
                       words=["ended with code 9", "one line of the log", "the reason why it does not start"])

    def test_a_server_that_cannot_be_run(self):
        self.file("llama-server", "#!/no/such/interpreter\n").chmod(0o755)
        self.fail_with(FAILED, "resource", "serve", MODEL, "--port", "0", environment=self.environment,
                       words=["llama-server", "cannot be run"])

    def test_a_server_that_ends_while_it_serves(self):
        self.fake("sign ready falls")
        serving = self.serve()
        self.assertEqual(serving.process.wait(PATIENCE), FAILED)
        self.assertIn("rowtide: llama-server ended with code 7", serving.said())
        self.assertIn("listens on", serving.printed())

    def test_a_port_that_is_taken(self):
        self.fake("sign ready")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.fail_with(FAILED, "io", "serve", MODEL, "--port", port, words=[f"--port {port}", "--port 0"],
                           environment=self.environment)
        self.assertFalse(self.told.exists())

    # Stopping

    def test_signals_before_it_is_ready(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                self.fake("sign")
                self.told.unlink(missing_ok=True)
                serving = self.serve()
                pid = self.story()["pid"]
                self.assertEqual(serving.stop(number), DONE, serving.said())
                self.assertNotIn("listens", serving.printed())
                self.assertFalse(is_alive(pid))

    def test_a_second_signal_kills_what_does_not_stop(self):
        self.fake("sign ready stubborn")
        serving = self.serve()
        serving.wait_for("listens on")
        pid = self.story()["pid"]
        serving.process.send_signal(signal.SIGTERM)
        until(lambda: "\nno\n" in serving.said(), "the server has been asked")
        self.assertIsNone(serving.process.poll())
        self.assertEqual(serving.stop(signal.SIGTERM), DONE)
        self.assertIn("is killed", serving.said())
        self.assertFalse(is_alive(pid))

    def test_no_server_is_left_when_the_program_is_killed(self):
        self.fake("sign ready stubborn")
        serving = self.serve()
        serving.wait_for("listens on")
        serving.process.kill()
        pid = self.story()["pid"]
        until(lambda: not is_alive(pid), "the server is gone too")


@unittest.skipUnless(LLAMA_SERVER.is_file() and PLUGIN.is_file(), "no llama-server was built")
class RealServeTest(ProgramTest):
    """With the real llama-server and the real plug-in."""

    def setUp(self):
        super().setUp()
        self.environment = {"PATH": str(LLAMA_SERVER.parent)}

    def serve(self, *arguments, environment=None):
        return Serving(self, MODEL, "--port", "0", "--context", "1024", *arguments, "--", "-t", "1",
                       environment=self.environment | (environment or {}))

    def complete(self, url):
        body = {"prompt": "The server process reads the configuration file and", "n_predict": 8, "temperature": 0}
        request = urllib.request.Request(url + "/completion", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["content"]

    def test_it_serves_and_stops(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                serving = self.serve("--json")
                document = serving.document()
                self.assertEqual(document["tables"], [TABLE])
                self.assertEqual(document["plug_in"], str(PLUGIN))
                with urllib.request.urlopen(document["url"] + "/health", timeout=PATIENCE) as health:
                    self.assertEqual(health.status, 200)
                self.assertTrue(self.complete(document["url"]))
                self.assertIn("rowtide: serving " + TABLE, serving.said())
                self.assertEqual(serving.stop(number), DONE, serving.said())
                self.assertFalse(is_alive(document["pid"]))
                self.assertNotIn("is killed", serving.said())

    def test_with_the_table_on_nvme(self):
        serving = self.serve("--json", "--placement", "nvme", "--memory", "32MiB", "--concurrency", "2")
        document = serving.document()
        self.assertEqual(document["environment"]["ROWTIDE_MEMORY"], "32MiB")
        self.assertIn("mode cache, budget 32.0 MiB", serving.said())
        self.assertTrue(self.complete(document["url"]))

    def test_speculation_from_the_text_is_an_option_that_it_takes(self):
        serving = self.serve("--json", "--speculate", "3")
        self.assertIn("ngram-simple", serving.document()["arguments"])

    def test_it_goes_when_the_program_is_killed(self):
        serving = self.serve("--json")
        document = serving.document()
        serving.process.kill()
        until(lambda: not is_alive(document["pid"]), "the server is gone too")

    def test_plug_ins_that_it_does_not_take(self):
        damaged = self.file("librowtide-ggml.so", "no library")
        for environment, words in [({"GGML_BACKEND_PATH": str(damaged)}, ["goes on without", str(damaged)]),
                                   ({"ROWTIDE_TABLES": ""}, ["goes on without", "ROWTIDE_TABLES"])]:
            with self.subTest(environment=environment):
                self.fail_with(NOT_SO, "not_served", "serve", MODEL, "--port", "0", "--context", "1024", words=words,
                               environment=self.environment | environment)

    def test_a_model_that_it_cannot_load(self):
        ended = self.run_program("serve", MODEL, "--port", "0", "--context", "1024", "--", "-m", "/dev/null",
                                 environment=self.environment)
        self.assertEqual(ended.code, REFUSED, ended.messages)
        self.assertRegex(ended.messages.splitlines()[-1], r"^rowtide: llama-server ended with code \d+: .*load.*model")


if __name__ == "__main__":
    unittest.main()
