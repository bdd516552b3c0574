"""rowtide ui: the server of the Explorer page, its API, and how it starts and stops."""
import json
import signal
import socket
import subprocess
import unittest

from program import DONE, FAILED, MODEL, PROGRAM, ProgramTest, USAGE
from served_page import ServedPage

KNOWN = {"model": "Qwen3.8-Flash-Next", "precision": "NVFP4", "device": "dgx-spark"}


class Ui(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.served = ServedPage("--paths")

    @classmethod
    def tearDownClass(cls):
        cls.served.close()

    def plan_of_program(self, **options):
        arguments = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        ended = self.run_program("plan", *arguments, "--json")
        self.assertIn(ended.code, (DONE, 1), ended.messages)
        return json.loads(ended.output)

    def test_the_page_and_its_files_are_in_the_program(self):
        kinds = {"/": "text/html", "/explorer.css": "text/css", "/explorer.js": "text/javascript", "/text.js": "text/javascript"}
        for path, kind in kinds.items():
            status, headers, text = self.served.get(path)
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith(kind), path)
            self.assertEqual(int(headers["Content-Length"]), len(text.encode()))
        self.assertIn("<title>Rowtide Explorer</title>", self.served.get("/")[2])
        self.assertEqual(self.served.get("/?model=x&device=y")[2], self.served.get("/")[2])

    def test_nothing_of_the_page_is_fetched_from_elsewhere(self):
        policy = self.served.get("/")[1]["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("http", policy)
        for path in ["/", "/explorer.css", "/explorer.js", "/text.js", "/plan_view.js"]:
            text = self.served.get(path)[2].replace("http://www.w3.org/2000/svg", "")
            self.assertNotIn("http://", text)
            self.assertNotIn("https://", text)
            self.assertNotIn("innerHTML", text)

    def test_the_catalog_names_what_there_is(self):
        catalog = json.loads(self.served.get("/api/catalog")[2])
        self.assertIn("Qwen3.8-Flash-Next", [model["name"] for model in catalog["models"]])
        self.assertIn("dgx-spark", [device["id"] for device in catalog["devices"]])
        self.assertLessEqual({"model", "device", "context", "placement", "memory"}, {option["name"] for option in catalog["options"]})
        for option in catalog["options"]:
            self.assertTrue(option["help"] and option["group"], option)

    def test_plans_are_those_of_the_command(self):
        for more in [{}, {"context": 131072, "concurrency": 4}, {"placement": "device"}, {"kv": "fp8", "memory": "2GiB", "engine": "sglang"},
                     {"devices": 2, "price_per_hour": 3.5}]:
            with self.subTest(more):
                status, plan = self.served.plan(**KNOWN, **more)
                self.assertEqual(status, 200)
                self.assertEqual(plan, self.plan_of_program(**KNOWN, **more))

    def test_a_checkpoint_of_this_machine_and_this_machine(self):
        status, plan = self.served.plan(path=MODEL, this_machine="1")
        self.assertEqual(status, 200, plan)
        self.assertTrue(plan["model"]["is_measured"])
        self.assertTrue(plan["machine"]["is_this"])
        self.assertEqual(plan["model"]["bytes_table"], 689_536 * 34)

    def test_what_does_not_fit_is_a_plan(self):
        status, plan = self.served.plan(**KNOWN, placement="device")
        self.assertEqual((status, plan["fits"]), (200, False))
        self.assertGreater(plan["missing_bytes"], 0)

    def test_errors_are_sentences_that_name_the_option(self):
        for more, words in [({"context": "many"}, "--context"), ({"device": "dgx-sparc"}, "dgx-spark"), ({"kv": "fp9"}, "--kv"),
                            ({"model": "Qwen3.8-Flash-Nxt"}, "Qwen3.8-Flash-Next"), ({"contxt": "1"}, "context"), ({"memory": "lots"}, "--memory")]:
            with self.subTest(more):
                status, answer = self.served.plan(**(KNOWN | more))
                self.assertEqual(status, 400)
                self.assertEqual(answer["error"]["code"], "usage")
                self.assertIn(words, answer["error"]["message"])
        status, answer = self.served.plan(path=self.folder / "none.gguf", device="dgx-spark")
        self.assertEqual((status, answer["error"]["code"]), (400, "not_found"))

    def test_only_this_machine_and_this_page_are_answered(self):
        self.assertEqual(self.served.get("/", headers={"Host": "evil.example"})[0], 403)
        self.assertEqual(self.served.get("/api/catalog", headers={"Host": f"evil.example:{self.served.port}"})[0], 403)
        self.assertEqual(self.served.get("/", headers={"Host": "localhost:8000"})[0], 200)  # a tunnel's port
        for site, status in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]:
            got, headers, _ = self.served.get("/api/catalog", headers={"Sec-Fetch-Site": site})
            self.assertEqual(got, status, site)
            self.assertNotIn("Access-Control-Allow-Origin", headers)
        with socket.socket() as elsewhere:
            address = next((found[4] for found in socket.getaddrinfo(socket.gethostname(), self.served.port, socket.AF_INET)
                            if not found[4][0].startswith("127.")), None)
            if address:
                elsewhere.settimeout(5)
                self.assertNotEqual(elsewhere.connect_ex(address), 0, address)

    def test_requests_of_other_origins_are_refused(self):
        own = f"127.0.0.1:{self.served.port}"
        for origin, status in [("http://evil.example", 403), ("null", 403), (f"http://{own}", 200)]:
            self.assertEqual(self.served.get("/api/catalog", headers={"Origin": origin, "Host": own})[0], status, origin)

    def test_files_are_read_only_where_that_was_asked_for(self):
        served = ServedPage()
        try:
            status, answer = served.plan(path="/etc/passwd", device="dgx-spark")
            self.assertEqual((status, answer["error"]["code"]), (400, "usage"))
            self.assertIn("--paths", answer["error"]["message"])
            self.assertNotIn("root", answer["error"]["message"])
            self.assertFalse(json.loads(served.get("/api/catalog")[2])["paths"])
        finally:
            served.close()

    def test_what_is_not_there_or_not_served(self):
        self.assertEqual(self.served.get("/nothing")[0], 404)
        self.assertEqual(self.served.get("/../ui.cc")[0], 404)
        self.assertEqual(self.served.get("/api/nothing")[0], 404)
        self.assertEqual(self.served.get("/api/plan", method="POST")[0], 405)
        self.assertEqual(self.served.get("/", method="HEAD")[2], "")

    def test_it_stops_cleanly(self):
        for sign in [signal.SIGINT, signal.SIGTERM]:
            served = ServedPage()
            waiting = socket.create_connection(("127.0.0.1", served.port))
            self.assertEqual(served.close(sign), (DONE, ""))
            waiting.close()

    def test_it_says_where_it_is(self):
        process = subprocess.Popen([PROGRAM, "ui", "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.assertRegex(process.stdout.readline(), r"^Rowtide Explorer: http://127\.0\.0\.1:\d+/\n$")
        process.terminate()
        process.communicate(timeout=30)

    def test_a_port_that_is_taken_or_none(self):
        self.fail_with(FAILED, "io", "ui", "--port", self.served.port, words=[f"--port {self.served.port}", "another port"])
        self.fail_with(USAGE, "usage", "ui", "--port", "65536", words=["--port"])
        self.fail_with(USAGE, "usage", "ui", "--prot", "1", words=["did you mean '--port'?"])


if __name__ == "__main__":
    unittest.main()
