"""The Explorer page in a browser, for tests and for pictures of it."""
import json
import os
import subprocess
import unittest

from playwright.sync_api import sync_playwright
from served_page import PROGRAM, ServedPage

CHROMIUM = os.environ.get("ROWTIDE_CHROMIUM", "/usr/bin/chromium")


class Browser:
    """A browser and the served page, until close()."""

    def __init__(self):
        self.served = ServedPage("--paths")
        self.playwright = sync_playwright().start()
        self.chromium = self.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    def close(self):
        self.chromium.close()
        self.playwright.stop()
        self.served.close()

    def open(self, query="", width=1360, height=900, **options):
        """A page of a context of its own, once it shows a plan or an error."""
        context = self.chromium.new_context(viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        page.faults = []
        page.requests = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and "400" not in message.text and page.faults.append(message.text))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(self.served.url + query)
        page.wait_for_selector("#verdict, .banner")
        settle(page)
        return page


def until(page, expression):
    """Waits until it is true. Playwright's own way has the page evaluate a string, which its policy forbids."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"ten seconds and still not: {expression}")


def settle(page):
    """Waits until the page shows what was chosen last."""
    page.wait_for_timeout(250)  # longer than the page waits after a keystroke
    until(page, "!document.querySelector('#results').hasAttribute('aria-busy')")


def plan_of_program(**options):
    arguments = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    ended = subprocess.run([PROGRAM, "plan", *arguments, "--json"], capture_output=True)
    return json.loads(ended.stdout)


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def open(self, query="", **options):
        page = self.browser.open(query, **options)
        self.addCleanup(page.context.close)
        self.addCleanup(lambda: self.assertEqual(page.faults, []))
        return page
