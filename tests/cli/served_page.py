"""`rowtide ui` as a running process, for tests of its server and of its page."""
import contextlib
import http.client
import json
import os
import signal
import subprocess
import urllib.parse

PROGRAM = os.environ["ROWTIDE_PROGRAM"]


class ServedPage:
    """The program on a free port until close(), with the environment's ROWTIDE_ variables left out."""

    def __init__(self, *arguments):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("ROWTIDE_")}
        self.process = subprocess.Popen([PROGRAM, "ui", "--port", "0", "--json", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=variables)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.port = urllib.parse.urlsplit(self.url).port

    def get(self, path, method="GET", headers=None):
        """(status, headers, text)"""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def plan(self, **options):
        status, _, text = self.get("/api/plan?" + urllib.parse.urlencode(
            {name.replace("_", "-"): value for name, value in options.items()}))
        return status, json.loads(text)

    def close(self, sign=signal.SIGTERM):
        """The exit code, and what was said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        output, messages = self.process.communicate(timeout=30)
        return self.process.returncode, output.decode() + messages.decode()
