"""The Explorer page, used: choices, figures, links, errors, recipes, comparison, and all of it by keyboard."""
import re
import unittest

from explorer import BrowserTest, plan_of_program, settle, until

SPARK = "?model=Qwen3.8-Flash-Next&precision=NVFP4&device=dgx-spark"


def text(page, selector):
    return " ".join(page.inner_text(selector).split())


def bytes_told(page, selector):
    """To the byte, from what the sizes under `selector` tell when they are pointed at."""
    titles = page.eval_on_selector_all(f"{selector} .size", "nodes => nodes.map((node) => node.title)")
    return [int(re.search(r"([\d,]+) bytes$", title)[1].replace(",", "")) for title in titles]


def number(words):
    return float(re.search(r"[\d,.]*\d", words)[0].replace(",", ""))


class Choosing(BrowserTest):
    def test_a_plan_is_there_at_once(self):
        page = self.open()
        self.assertRegex(text(page, "#verdict h2"), "Fits")
        self.assertEqual(page.input_value("#option-model"), "Qwen3.8-Flash-Next")
        self.assertEqual(page.input_value("#option-device"), "dgx-spark")
        self.assertIn("Unified memory", text(page, "#pools"))

    def test_model_and_device_change_verdict_and_bars(self):
        page = self.open(SPARK)
        before = (text(page, "#verdict"), bytes_told(page, "#pools .legend"), page.eval_on_selector_all("#pools .segment", "n => n.map((s) => s.style.width)"))
        page.select_option("#option-device", "rtx-5090")
        settle(page)
        self.assertIn("Does not fit", text(page, "#verdict h2"))
        self.assertIn("missing", text(page, "#pools"))
        page.select_option("#option-model", "Llama-3.1-8B")
        settle(page)
        self.assertIn("Fits", text(page, "#verdict h2"))
        self.assertIn("no conditional-memory table", text(page, "#table"))
        after = (text(page, "#verdict"), bytes_told(page, "#pools .legend"), page.eval_on_selector_all("#pools .segment", "n => n.map((s) => s.style.width)"))
        for was, now in zip(before, after):
            self.assertNotEqual(was, now)

    def test_what_fits_and_the_engine_cannot_run_is_said(self):
        page = self.open("?model=Qwen3.8-Flash-Next&precision=Q4&device=dgx-spark&engine=vllm")
        plan = plan_of_program(model="Qwen3.8-Flash-Next", precision="Q4", device="dgx-spark", engine="vllm")
        self.assertEqual((plan["fits"], plan["runs"]), (True, False))
        self.assertEqual(text(page, "#verdict h2 span >> nth=1"), "Fits, but vLLM cannot run it")
        self.assertIn("vLLM cannot run it", page.inner_text("#announcement"))

    def test_precisions_are_those_of_the_model(self):
        page = self.open("?model=DeepSeek-V4.1-Flash&device=dgx-spark&devices=4")
        deepseek = page.eval_on_selector_all("#option-precision option", "n => n.map((o) => o.value)")
        page.select_option("#option-model", "Qwen3.8-Flash-Next")
        settle(page)
        self.assertNotEqual(page.eval_on_selector_all("#option-precision option", "n => n.map((o) => o.value)"), deepseek)

    def test_a_place_for_the_table_can_be_taken_from_the_list(self):
        page = self.open(SPARK)
        page.locator(".candidates li", has_text="On the device").get_by_role("button").click()
        settle(page)
        self.assertIn("placement=device", page.url)
        self.assertTrue(page.is_checked("#option-placement-device"))
        self.assertIn("Does not fit", text(page, "#verdict h2"))

    def test_what_is_left_alone_shows_what_is_taken_for_it(self):
        page = self.open(SPARK)
        self.assertEqual(page.input_value("#option-context"), "32,768")
        self.assertNotIn("context", page.url)
        page.fill("#option-context", "65,536")
        settle(page)
        self.assertIn("context=65536", page.url)
        page.fill("#option-context", "")
        page.press("#option-context", "Tab")
        settle(page)
        self.assertNotIn("context", page.url)
        self.assertEqual(page.input_value("#option-context"), "32,768")

    def test_sliders_set_what_they_stand_beside(self):
        page = self.open(SPARK)
        page.eval_on_selector("#option-memory ~ input[type=range]", "(node) => { node.value = 5; node.dispatchEvent(new Event('input')); }")
        settle(page)
        self.assertIn("memory=2GiB", page.url)
        self.assertIn("cache 2.00 GiB", text(page, "#verdict"))


class Figures(BrowserTest):
    def test_they_are_those_of_the_command(self):
        options = {"model": "Qwen3.8-Flash-Next", "precision": "NVFP4", "device": "dgx-spark", "context": 131072, "concurrency": 2}
        page = self.open(SPARK + "&context=131072&concurrency=2")
        plan = plan_of_program(**options)
        self.assertIn(" ".join(plan["verdict"].split()), text(page, "#verdict"))
        for pool, node in zip(plan["pools"], page.query_selector_all("#pools .pool")):
            lines = node.eval_on_selector_all(".line", """nodes => nodes.filter((line) => !line.querySelector('.small-parts'))
                .map((line) => [line.querySelector('.name').textContent, line.querySelector('.value .size').title])""")
            self.assertEqual({name: int(re.search(r"([\d,]+) bytes$", title)[1].replace(",", "")) for name, title in lines},
                             {item["name"]: item["bytes"] for item in pool["items"] if item["bytes"] > 0})
        self.assertEqual(bytes_told(page, "#pools .pool-head p")[:3],
                         [plan["pools"][0][key] for key in ("used_bytes", "capacity_bytes", "free_bytes")])
        for label, value in [("Decode, one stream", plan["speed"]["decode_tok_s"]), ("First token", plan["speed"]["ttft_ms"]),
                             ("Context in memory", plan["kv"]["tokens"])]:
            shown = number(page.locator(".tile", has_text=label).locator("strong").inner_text())
            self.assertAlmostEqual(shown / value, 1 if shown > value / 500 else 1e-3, delta=0.01, msg=label)
        self.assertAlmostEqual(number(text(page, ".bound strong")) / plan["speed"]["decode_bound_tok_s"], 1, delta=0.01)

    def test_the_upper_bound_stands_apart_from_the_estimate(self):
        page = self.open(SPARK)
        self.assertIn("Upper bound, not an estimate", text(page, "#speed .bound"))
        self.assertIn("estimated, target", text(page, "#speed .meter"))
        page.click("text=What the estimate assumes")
        self.assertGreater(page.locator("#speed .more li").count(), 0)

    def test_targets_are_met_or_missed(self):
        page = self.open(SPARK + "&target-tok-s=1")
        self.assertIn("met", text(page, "#speed .meter >> nth=1"))
        page.fill("#option-target-tok-s", "5000")
        settle(page)
        self.assertIn("missed", text(page, "#speed .meter >> nth=1"))

    def test_a_part_says_how_it_comes_about(self):
        page = self.open(SPARK)
        plan = plan_of_program(model="Qwen3.8-Flash-Next", precision="NVFP4", device="dgx-spark")
        item = max(plan["pools"][0]["items"], key=lambda each: each["bytes"])
        line = page.locator("#pools .line", has_text=item["name"]).first
        line.locator("summary").hover()
        self.assertIn(item["formula"][:40], page.locator("#pools .readout").first.inner_text())
        line.locator("summary").click()
        self.assertIn(f"{item['bytes']:,} bytes", line.inner_text())
        self.assertIn(item["source"], " ".join(line.inner_text().split()))

    def test_the_curve_marks_the_cache(self):
        page = self.open(SPARK + "&memory=1GiB")
        picture = page.locator("#hits svg")
        self.assertRegex(picture.get_attribute("aria-label"), r"A cache of 1\.00\sGiB answers about \d+\s% of the lookups")
        plan = plan_of_program(model="Qwen3.8-Flash-Next", precision="NVFP4", device="dgx-spark", memory="1GiB")
        self.assertAlmostEqual(number(picture.locator(".chosen-text").text_content().split(":")[1]), 100 * plan["table"]["hit_share"], delta=1)
        page.click("text=The curve's figures")
        self.assertEqual(page.locator("#hits tbody tr").count(), len(plan["hit_share_curve"]))


class Links(BrowserTest):
    def test_a_link_restores_the_choice(self):
        page = self.open(SPARK)
        page.select_option("#option-precision", "FP8")
        page.fill("#option-context", "8192")
        page.check("#option-placement-nvme", force=True)
        page.fill("#option-memory", "512MiB")
        page.click("text=More")
        page.fill("#option-prompt", "2000")
        settle(page)
        again = self.open(page.url.split("/", 3)[3])
        self.assertEqual(text(again, "#results"), text(page, "#results"))
        for name, value in [("precision", "FP8"), ("context", "8,192"), ("memory", "512MiB"), ("prompt", "2,000")]:
            self.assertEqual(again.input_value(f"#option-{name}"), value)
        self.assertTrue(again.is_checked("#option-placement-nvme"))

    def test_the_link_can_be_copied(self):
        page = self.open(SPARK + "&context=4096", permissions=["clipboard-read", "clipboard-write"])
        page.click("#copy-link")
        page.wait_for_selector("text=Copied")
        self.assertEqual(page.evaluate("navigator.clipboard.readText()"), page.url)

    def test_start_over_forgets_choices(self):
        page = self.open(SPARK + "&context=4096&placement=device")
        page.click("#reset")
        settle(page)
        self.assertNotIn("context", page.url)
        self.assertIn("Fits", text(page, "#verdict h2"))


class Errors(BrowserTest):
    def test_a_bad_value_is_shown_at_its_control(self):
        page = self.open(SPARK)
        page.fill("#option-context", "many")
        settle(page)
        self.assertEqual(page.get_attribute("#option-context", "aria-invalid"), "true")
        self.assertIn("whole number", page.inner_text("#option-context-error"))
        self.assertIn("option-context-error", page.get_attribute("#option-context", "aria-describedby"))
        self.assertIn("No plan", page.inner_text("#announcement"))
        page.fill("#option-context", "4096")
        settle(page)
        self.assertIsNone(page.get_attribute("#option-context", "aria-invalid"))
        self.assertEqual(page.locator(".banner").count(), 0)

    def test_one_under_more_is_opened(self):
        page = self.open(SPARK + "&tp=7")
        self.assertTrue(page.is_visible("#option-tp-error"))
        self.assertEqual(page.get_attribute("#option-tp", "aria-invalid"), "true")

    def test_a_context_beyond_the_models_names_its_limit(self):
        page = self.open(SPARK + "&context=99999999")
        self.assertIn("262", page.inner_text("#option-context-error"))

    def test_what_a_person_types_stays_text(self):
        page = self.open(SPARK)
        page.select_option("#option-model", "path")
        page.fill("#option-path", "<img src=x onerror=document.title='owned'>.gguf")
        settle(page)
        self.assertIn("<img src=x", page.inner_text("#option-path-error"))
        self.assertEqual(page.locator("#results img, #controls img").count(), 0)
        self.assertEqual(page.title(), "Rowtide Explorer")

    def test_an_unknown_device_of_a_link_is_named(self):
        page = self.open("?model=Qwen3.8-Flash-Next&device=dgx-sparc")
        self.assertIn("dgx-spark", page.inner_text("#option-device-error"))

    def test_a_program_that_has_stopped_is_said(self):
        page = self.open(SPARK)
        page.route("**/api/plan**", lambda route: route.abort())
        page.fill("#option-context", "4096")
        settle(page)
        self.assertIn("does not answer", page.inner_text(".banner"))
        page.faults.clear()  # the browser's own lines on the request that failed


class Recipes(BrowserTest):
    def test_a_recipe_is_copied_as_it_stands(self):
        page = self.open("?model=Qwen3.8-Flash-Next&precision=Q4&device=dgx-spark&engine=llama_cpp", permissions=["clipboard-read", "clipboard-write"])
        plan = plan_of_program(model="Qwen3.8-Flash-Next", precision="Q4", device="dgx-spark", engine="llama_cpp")
        self.assertTrue(plan["recipes"]["llama_cpp"]["runs"])
        page.click("#panel-llama_cpp .copy")
        page.wait_for_selector("#panel-llama_cpp >> text=Copied")
        self.assertEqual(page.evaluate("navigator.clipboard.readText()"), plan["recipes"]["llama_cpp"]["text"])

    def test_engines_that_cannot_run_it_say_why(self):
        page = self.open("?model=Qwen3.8-Flash-Next&precision=Q4&device=dgx-spark")
        plan = plan_of_program(model="Qwen3.8-Flash-Next", precision="Q4", device="dgx-spark")
        refused = [key for key, recipe in plan["recipes"].items() if not recipe["runs"]]
        self.assertTrue(refused)
        for key in refused:
            page.click(f"#tab-{key}")
            for limit in plan["recipes"][key]["limits"]:
                self.assertIn(" ".join(limit["reason"].split()), text(page, f"#panel-{key}"))
            self.assertEqual(page.locator(f"#panel-{key} .copy").count(), 0)

    def test_tabs_by_arrow_keys(self):
        page = self.open(SPARK)
        tabs = page.locator("[role=tab]")
        tabs.first.click()
        page.keyboard.press("ArrowRight")
        self.assertEqual(tabs.nth(1).get_attribute("aria-selected"), "true")
        self.assertTrue(tabs.nth(1).evaluate("node => node === document.activeElement"))
        page.keyboard.press("End")
        page.keyboard.press("ArrowRight")
        self.assertEqual(tabs.first.get_attribute("aria-selected"), "true")
        self.assertEqual(page.locator("[role=tabpanel]:visible").count(), 1)


class Comparing(BrowserTest):
    def test_plans_stand_side_by_side_and_in_the_link(self):
        page = self.open(SPARK)
        page.select_option("#compare-device", "rtx-pro-6000")
        settle(page)
        self.assertEqual(page.locator(".side").count(), 2)
        page.click("text=Pin this plan")
        page.fill("#option-context", "8192")
        settle(page)
        self.assertEqual(page.locator(".side").count(), 3)
        again = self.open(page.url.split("/", 3)[3])
        until(again, "document.querySelectorAll('.side dl').length === 3")
        self.assertEqual(text(again, "#compare"), text(page, "#compare"))
        again.locator(".side").nth(1).get_by_role("button", name="Show").click()
        settle(again)
        self.assertEqual(again.input_value("#option-device"), "rtx-pro-6000")
        again.locator(".side").nth(1).get_by_role("button", name="Remove").click()
        self.assertEqual(again.locator(".side").count(), 2)
        self.assertEqual(again.url.count("pin="), 1)


class Keyboard(BrowserTest):
    def tab_to(self, page, selector):
        for _ in range(120):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                shown = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                self.assertNotEqual(shown, "none", f"{selector} has the focus and does not show it")
                return
        self.fail(f"{selector} cannot be reached by the Tab key")

    def test_from_the_top_to_a_copied_recipe(self):
        page = self.open("?model=Qwen3.8-Flash-Next&precision=Q4&device=dgx-spark", permissions=["clipboard-read", "clipboard-write"])
        self.tab_to(page, ".skip")
        self.tab_to(page, "#option-device")
        page.keyboard.press("r")  # a list's own search by letter
        page.keyboard.press("Home")
        settle(page)
        self.tab_to(page, "#option-context")
        page.keyboard.press("ArrowUp")
        settle(page)
        self.assertIn("context=65536", page.url)
        self.tab_to(page, "input[name=placement]")
        page.keyboard.press("ArrowRight")
        settle(page)
        self.assertIn("placement=device", page.url)
        page.keyboard.press("ArrowLeft")
        settle(page)
        self.tab_to(page, "#pools summary")
        page.keyboard.press("Enter")
        self.assertTrue(page.is_visible("#pools .line[open] .why"))
        self.tab_to(page, "[role=tab]")
        page.keyboard.press("Home")
        self.tab_to(page, ".copy")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Copied")

    def test_skipping_to_the_plan(self):
        page = self.open(SPARK)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        self.assertEqual(page.evaluate("document.activeElement.id"), "results")

    def test_the_focus_stays_where_it_is_when_the_plan_changes(self):
        page = self.open(SPARK)
        page.focus("#tab-llama_cpp")
        page.evaluate("document.querySelector('#option-context').value = '4096'; document.querySelector('#option-context').dispatchEvent(new Event('input'))")
        settle(page)
        self.assertIn("context=4096", page.url)
        self.assertEqual(page.evaluate("document.activeElement.id"), "tab-llama_cpp")

    def test_the_verdict_is_announced(self):
        page = self.open(SPARK)
        self.assertEqual(page.get_attribute("#announcement", "aria-live"), "polite")
        self.assertIn("Fits", page.inner_text("#announcement"))
        page.check("#option-placement-device", force=True)
        settle(page)
        self.assertIn("Does not fit", page.inner_text("#announcement"))


if __name__ == "__main__":
    unittest.main()
