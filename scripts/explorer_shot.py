"""Pictures of the Explorer page for the documents: docs/explorer.png and docs/explorer_phone.png.

    make test, then
    .cache/browser/bin/python scripts/explorer_shot.py [PROGRAM]    PROGRAM is build/rowtide unless given
"""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ["ROWTIDE_PROGRAM"] = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "rowtide")
sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT / "tests" / "cli")]
from explorer import Browser  # which reads the environment

CHOICE = "?model=Qwen3.8-Flash-Next&precision=Q4&device=dgx-spark&context=131072"
PICTURES = [("explorer.png", CHOICE, {"width": 1280, "height": 1000, "color_scheme": "light"}, "scrollTo(0, 0)"),
            ("explorer_phone.png", CHOICE, {"width": 390, "height": 780, "color_scheme": "dark"},
             "document.querySelector('#results').scrollIntoView()")]

browser = Browser()
try:
    for name, query, options, place in PICTURES:
        page = browser.open(query, reduced_motion="reduce", **options)
        page.evaluate(place)
        page.wait_for_timeout(300)
        page.screenshot(path=ROOT / "docs" / name)
        print(f"docs/{name}")
finally:
    browser.close()
