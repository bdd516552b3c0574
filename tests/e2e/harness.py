"""What the end-to-end tests share: the programs, the ways to run them, and the plug-in's sign.

Everything runs unmodified llama.cpp tools on models/tidepool.gguf, with one thread and a lazily mapped table, once
without the plug-in and once with it. Paths come from the environment, which tests/e2e/CMakeLists.txt sets.
"""
import concurrent.futures
import contextlib
import json
import math
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request


def path_from(variable):
    value = os.environ.get(variable)
    if not value or not os.path.exists(value):
        raise SystemExit(f"{variable} is {value!r}: the end-to-end tests need it to name what `make test` builds there")
    return pathlib.Path(value)


SOURCE = path_from("ROWTIDE_SOURCE")
BUILD = path_from("ROWTIDE_BUILD")
LLAMA_BIN = path_from("ROWTIDE_LLAMA_BIN")
PLUGIN = path_from("ROWTIDE_PLUGIN")
MODEL = SOURCE / "models" / "tidepool.gguf"
TEXT = SOURCE / "models" / "heldout.txt"
TABLE = "per_layer_token_embd.weight"
TABLE_BYTES = 689_536 * 34
TABLE_OFFSET = MODEL.stat().st_size - TABLE_BYTES  # the table is the last tensor of the file
COMMON = ["-t", "1", "-lzm", "on"]
PROMPTS = ["The server process reads the configuration file and", "And it came to pass in those days, that",
           "To create a new table in the database, use the", "If the connection is closed before the transaction"]


class Condition:
    """How the tools run: a launcher before each command, and additions to their environment."""
    launcher = []
    environment = {}


def command_and_environment(program, arguments, plugin):
    environment = {**os.environ, **Condition.environment}
    environment.pop("GGML_BACKEND_PATH", None)
    if plugin:
        environment["GGML_BACKEND_PATH"] = str(PLUGIN)
    return [*Condition.launcher, str(program), *map(str, arguments)], environment


def sign_of(pid):
    """The plug-in's own account of what it serves in process `pid`, or None where it has not served yet."""
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.readlink(link).startswith("/memfd:rowtide-status"):
                return json.loads(link.read_bytes().rstrip(b"\0"))
    return None


def check_sign(sign, log, tables):
    """The sign and the log must name exactly `tables`, a list of file paths or "memory"."""
    if sign is None:
        raise AssertionError(
            "llama.cpp ran without the plug-in: no memfd `rowtide-status` was among its open files. Check that "
            f"GGML_BACKEND_PATH names {PLUGIN}, that the file loads (the log says why not), and that this llama.cpp "
            f"loads back ends dynamically (else add `-dev none`). Its log:\n{log}")
    if sign["plugin"] != "rowtide" or not sign["version"] or not sign["ggml_version"]:
        raise AssertionError(f"the sign does not say who serves: {sign}")
    served = sorted((table["name"], table["source"]) for table in sign["tables"])
    if served != sorted((TABLE, str(path)) for path in tables):
        raise AssertionError(f"the sign names other tables than {tables}: {sign}\n{log}")
    lines = [line for line in log.splitlines() if "rowtide: serving" in line]
    if len(lines) != len(tables):
        raise AssertionError(f"{len(lines)} lines `rowtide: serving` for {len(tables)} tables:\n{log}")


class Finished:
    """A tool that has run: its output and log, and the sign seen while it ran."""

    def __init__(self, output, log, sign):
        self.output, self.log, self.sign = output, log, sign


def run_tool(name, *arguments, plugin, tables=(MODEL,)):
    """Runs llama-`name` to its end. With the plug-in, checks that it served `tables`."""
    command, environment = command_and_environment(LLAMA_BIN / f"llama-{name}", [*COMMON, *arguments], plugin)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=log, stdin=subprocess.DEVNULL)
        sign = None
        while process.poll() is None:
            with contextlib.suppress(OSError):
                sign = max(sign, sign_of(process.pid), key=lambda seen: len(seen["tables"]) if seen else -1)
            time.sleep(0.002)
        output.seek(0)
        log.seek(0)
        finished = Finished(output.read(), log.read().decode(errors="replace"), sign)
    if process.returncode != 0:
        raise AssertionError(f"{command} ended with {process.returncode}:\n{finished.log}")
    if plugin:
        check_sign(finished.sign, finished.log, tables)
    return finished


def complete(model, *arguments, plugin, tables=(MODEL,), prompt=PROMPTS[0], tokens=48):
    """Greedy text of llama-completion, as bytes.

    Now and then the unmodified program loses a piece of what it printed, mostly the end: it prints from a thread that
    it does not always wait for. So this is the longest text that two of at least three runs agree on.
    """
    texts, agreed = [], []
    while len(texts) < 3 or not agreed:
        if len(texts) == 8:
            raise AssertionError(f"eight runs of one command gave eight different texts: {texts}")
        texts.append(run_tool("completion", "-m", model, "-no-cnv", "--no-display-prompt", "-n", tokens, "--temp", "0",
                              "--top-k", "1", "-p", prompt, *arguments, plugin=plugin, tables=tables).output)
        agreed = [text for text in texts if texts.count(text) > 1]
    return max(agreed, key=len)


class Server:
    """llama-server with four slots, as a context."""

    def __init__(self, *arguments, plugin, model=MODEL, environment=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log_file = tempfile.NamedTemporaryFile(prefix="llama-server-", suffix=".log")
        command, variables = command_and_environment(
            LLAMA_BIN / "llama-server",
            [*COMMON, "-m", model, "-np", "4", "-c", "2048", "--port", port, "--no-ui", *arguments], plugin)
        self.process = subprocess.Popen(command, env={**variables, **(environment or {})}, stdout=self.log_file,
                                        stderr=self.log_file, stdin=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self.url + "/health", timeout=5).close()
                return self
            time.sleep(0.02)
        self.__exit__()
        raise AssertionError(f"llama-server did not come up:\n{self.log()}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log(self):
        return pathlib.Path(self.log_file.name).read_text(errors="replace")

    def sign(self):
        return sign_of(self.process.pid)

    def check_sign(self, tables=(MODEL,)):
        check_sign(self.sign(), self.log(), tables)

    def request(self, prompt, slot=0, tokens=32):
        """(HTTP status, JSON answer) of one greedy completion that recomputes the whole prompt."""
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "n_probs": 3, "return_tokens": True,
                "cache_prompt": False, "id_slot": slot}
        request = urllib.request.Request(self.url + "/completion", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def tokens_and_log_probabilities(self, prompt, slot=0):
        """The tokens, and for each the candidates' (id, log-probability). Fails on a number that is not finite."""
        status, answer = self.request(prompt, slot)
        if status != 200:
            raise AssertionError(f"HTTP {status}: {answer}\n{self.log()}")
        probabilities = [[(top["id"], top["logprob"]) for top in [token, *token["top_logprobs"]]]
                         for token in answer["completion_probabilities"]]
        for candidates in probabilities:
            for _, logprob in candidates:
                if not isinstance(logprob, (int, float)) or not math.isfinite(logprob):
                    raise AssertionError(f"log-probability {logprob!r} for {prompt!r}")
        if not answer["tokens"] or len(probabilities) != len(answer["tokens"]):
            raise AssertionError(f"{len(probabilities)} log-probabilities for {len(answer['tokens'])} tokens")
        return answer["tokens"], probabilities

    def one_by_one(self):
        return [self.tokens_and_log_probabilities(prompt, slot) for slot, prompt in enumerate(PROMPTS)]

    def at_once(self):
        """The tokens of all prompts, asked for at the same time."""
        with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
            answers = pool.map(self.tokens_and_log_probabilities, PROMPTS, range(len(PROMPTS)))
            return [tokens for tokens, _ in answers]


def altered_copy(target):
    """A copy of the model with the same header and weights whose table holds its rows in another order."""
    content = bytearray(MODEL.read_bytes())
    table = content[TABLE_OFFSET:]
    content[TABLE_OFFSET:] = table[TABLE_BYTES // 2:] + table[:TABLE_BYTES // 2]
    target.write_bytes(content)
    return target


class EndToEndTest(unittest.TestCase):
    """A test case with a scratch folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rowtide-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder)
