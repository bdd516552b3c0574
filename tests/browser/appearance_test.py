"""The Explorer page, looked at: narrow screens, contrast in light and dark, motion, print, names of controls, and that it
asks nothing of any other machine."""
import unittest
import urllib.parse

from explorer import BrowserTest, settle, until

FITS = "?model=Qwen3.8-Flash-Next&precision=NVFP4&device=dgx-spark"
TOO_LARGE = "?model=DeepSeek-V4.1-Flash&device=rtx-5090&placement=device&concurrency=8"
RUNS_NOWHERE = "?model=Qwen3.8-Flash-Next&precision=Q4&device=dgx-spark&engine=vllm"
REFUSED = FITS + "&context=many"
PINNED = FITS + "&pin=model%3DLlama-3.1-8B%26device%3Drtx-5090&pin=model%3DQwen3-30B-A3B%26device%3Dh100"

# Every text whose contrast with what it stands on is below what WCAG asks (AA): 4.5, or 3 for large type.
CONTRAST = """() => {
  const channels = (colour) => { const n = colour.match(/[\\d.]+/g).map(Number); return { rgb: n.slice(0, 3), alpha: n[3] ?? 1 }; };
  const light = (rgb) => { const [r, g, b] = rgb.map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const grounds = (node) => {
    for (; node; node = node.parentElement) {
      const style = getComputedStyle(node);
      const gradient = style.backgroundImage.startsWith("linear-gradient") ? style.backgroundImage.match(/rgba?\\([^)]*\\)/g) : null;
      if (gradient) return gradient.map((colour) => channels(colour).rgb);
      const { rgb, alpha } = channels(style.backgroundColor);
      if (alpha === 1) return [rgb];
    }
    return [[255, 255, 255]];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || node.closest(".unseen, noscript, svg, .skip")) continue;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    for (const ground of grounds(node)) {
      const got = ratio(channels(style.color).rgb, ground);
      if (got < (isLarge ? 3 : 4.5)) poor.push(`${got.toFixed(2)} ${node.className || node.tagName}: ${walker.currentNode.data.trim().slice(0, 40)}`);
    }
  }
  return [...new Set(poor)];
}"""
OVERFLOW = """() => {
  const wide = [...document.querySelectorAll("body *")].filter((node) => node.checkVisibility() && !node.closest("pre, .skip, .unseen, .bar") &&
    (node.getBoundingClientRect().right > innerWidth + 1 || node.getBoundingClientRect().left < -1));
  return [document.documentElement.scrollWidth > innerWidth, wide.map((node) => `${node.tagName} ${node.className}`).slice(0, 5)];
}"""
OPEN_ALL = "document.querySelectorAll('details').forEach((node) => { node.open = true; })"


class Appearance(BrowserTest):
    def test_a_phone_needs_no_sideways_scroll(self):
        for query in [FITS, TOO_LARGE, RUNS_NOWHERE, REFUSED, PINNED]:
            with self.subTest(query):
                page = self.open(query, width=360, height=740)
                self.assertEqual(page.evaluate(OVERFLOW), [False, []])
                page.evaluate(OPEN_ALL)
                self.assertEqual(page.evaluate(OVERFLOW), [False, []])

    def test_the_verdict_is_in_sight_on_a_phone(self):
        page = self.open(FITS, width=360, height=740)
        strip = page.locator("#strip")
        self.assertIn("Fits", strip.inner_text())
        self.assertLessEqual(strip.bounding_box()["y"] + strip.bounding_box()["height"], 741)
        strip.click()
        until(page, "document.querySelector('#verdict').getBoundingClientRect().top < 200")

    def test_text_has_contrast_in_light_and_dark(self):
        for scheme in ["light", "dark"]:
            for query in [FITS, TOO_LARGE, RUNS_NOWHERE, REFUSED, PINNED]:
                with self.subTest(scheme, query=query):
                    page = self.open(query, color_scheme=scheme)
                    page.evaluate(OPEN_ALL)
                    self.assertEqual(page.evaluate(CONTRAST), [])

    def test_the_contrast_check_finds_what_is_poor(self):
        page = self.open(FITS)
        page.evaluate("document.querySelector('.sentence').style.color = '#999'")
        self.assertIn("sentence", " ".join(page.evaluate(CONTRAST)))

    def test_dark_and_light_by_system_and_by_button(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        light = self.open(FITS, color_scheme="light").evaluate(ground)
        page = self.open(FITS, color_scheme="dark")
        dark = page.evaluate(ground)
        self.assertNotEqual(light, dark)
        page.click("#theme")
        self.assertEqual(page.evaluate(ground), light)
        page.reload()
        page.wait_for_selector("#verdict")
        self.assertEqual(page.evaluate(ground), light)
        page.click("#theme")
        page.click("#theme")
        self.assertEqual(page.evaluate(ground), dark)

    def test_bars_can_be_read_without_colour(self):
        page = self.open(FITS)
        letters = page.eval_on_selector_all("#pools .pool:first-of-type .segment b", "nodes => nodes.map((node) => node.textContent)")
        self.assertGreater(len(letters), 3)
        self.assertEqual(len(letters), len(set(letters)))
        swatches = page.eval_on_selector_all("#pools .pool:first-of-type .legend > li > details > summary .swatch", "nodes => nodes.map((node) => node.textContent)")
        self.assertEqual(letters, swatches)

    def test_every_control_has_a_name(self):
        page = self.open(FITS)
        page.evaluate(OPEN_ALL)
        unnamed = page.eval_on_selector_all("input, select, button", """nodes => nodes.filter((node) =>
            !(node.labels?.length && node.labels[0].textContent.trim()) && !node.getAttribute('aria-label') && !node.textContent.trim()).map((node) => node.outerHTML)""")
        self.assertEqual(unnamed, [])
        ids = page.eval_on_selector_all("[id]", "nodes => nodes.map((node) => node.id)")
        self.assertEqual(len(ids), len(set(ids)))
        dangling = page.eval_on_selector_all("[aria-describedby], [aria-controls], label[for]", """nodes => nodes.flatMap((node) =>
            (node.getAttribute('aria-describedby') ?? node.getAttribute('aria-controls') ?? node.htmlFor).split(' ')).filter((id) => !document.getElementById(id))""")
        self.assertEqual(dangling, [])

    def test_nothing_moves_where_motion_is_unwanted(self):
        page = self.open(FITS, reduced_motion="reduce")
        self.assertEqual(page.eval_on_selector_all(".segment, .fill, summary", "nodes => [...new Set(nodes.map((node) => getComputedStyle(node).transitionDuration))]"), ["0s"])

    def test_paper_shows_the_plan_alone(self):
        page = self.open(FITS, color_scheme="dark")
        page.emulate_media(media="print")
        self.assertFalse(page.is_visible("#controls"))
        self.assertTrue(page.is_visible("#verdict"))
        self.assertEqual(page.evaluate(CONTRAST), [])

    def test_no_other_machine_is_asked(self):
        page = self.open(PINNED)
        page.evaluate(OPEN_ALL)
        page.select_option("#option-device", "h100")
        settle(page)
        hosts = {urllib.parse.urlsplit(url).netloc for url in page.requests if not url.startswith("data:")}
        self.assertEqual(hosts, {f"127.0.0.1:{self.browser.served.port}"})


if __name__ == "__main__":
    unittest.main()
