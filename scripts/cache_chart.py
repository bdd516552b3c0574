"""Draws hit shares by size, a panel a trace.

    cache_chart.py OUT.svg RESULT.json...   results of `rowtide bench cache --json`
"""
import json
import math
import pathlib
import sys

# In the order of the legend: policy, words, colour (to be seen on white and on black), dashes.
LINES = [
    ("optimum", "optimum (knows the future)", "#8a8f98", "5 4"),
    ("rowtide", "Rowtide", "#3b82f6", ""),
    ("lru", "bundles, least recently used", "#0f9f7a", ""),
    ("static", "static hot set", "#a566d6", ""),
    ("page_cache", "page cache, 4 KiB", "#dd7a1c", ""),
]
ACROSS, WIDTH, HEIGHT = 3, 250, 190  # panels in a row, and each one's plot
LEFT, TOP, GAP_X, GAP_Y = 52, 34, 66, 66
# One grey that can be read on white and on black, since not every viewer tells which it has.
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #78808b }
  .title { font-weight: 600 }
  .grid { stroke: #8a8f98; stroke-opacity: .28 }
"""


def size_text(size):
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"


def read(paths):
    """{trace: {policy: [(bytes, share)]}}, results of one trace put together."""
    panels = {}
    for path in paths:
        result = json.loads(pathlib.Path(path).read_text())
        curves = panels.setdefault(pathlib.Path(result["trace"]).stem, {})
        for policy in result["policies"]:
            curves[policy["name"]] = sorted((p["memory_bytes"], p["hit_share"]) for p in policy["points"])
    return panels


class Panel:
    def __init__(self, number, sizes):
        self.x0 = LEFT + number % ACROSS * (WIDTH + GAP_X)
        self.y0 = TOP + number // ACROSS * (HEIGHT + GAP_Y)
        self.low, self.high = (math.log2(size) for size in (min(sizes), max(sizes)))
        self.sizes = sizes

    def x(self, size):
        return self.x0 + WIDTH * (math.log2(size) - self.low) / max(self.high - self.low, 1)

    def y(self, share):
        return self.y0 + HEIGHT * (1 - share)

    def frame(self, name):
        yield f'<text class="title" x="{self.x0}" y="{self.y0 - 10}">{name}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1):
            y = self.y(share)
            yield f'<path class="grid" d="M{self.x0} {y:.1f}h{WIDTH}"/>'
            yield f'<text x="{self.x0 - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        for size in self.sizes:
            yield f'<text x="{self.x(size):.1f}" y="{self.y(0) + 18:.1f}" text-anchor="middle">{size_text(size)}</text>'

    def curve(self, points, colour, dashes):
        at = [(self.x(size), self.y(share)) for size, share in points]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        yield f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        for x, y in at:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>'


def legend(number):
    x = LEFT + number % ACROSS * (WIDTH + GAP_X)
    y = TOP + number // ACROSS * (HEIGHT + GAP_Y) + 16
    for _, words, colour, dashes in LINES:
        yield f'<path d="M{x} {y}h26" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        yield f'<text x="{x + 34}" y="{y + 4}">{words}</text>'
        y += 24
    yield f'<text x="{x}" y="{y + 10}">Share of the rows asked for that were</text>'
    yield f'<text x="{x}" y="{y + 27}">in memory, by memory.</text>'


def draw(panels):
    body = []
    for number, (name, curves) in enumerate(panels.items()):
        panel = Panel(number, [size for size, _ in next(iter(curves.values()))])
        body += panel.frame(name)
        for policy, _, colour, dashes in LINES:
            if policy in curves:
                body += panel.curve(curves[policy], colour, dashes)
    body += legend(len(panels))
    rows = len(panels) // ACROSS + 1
    width, height = LEFT + ACROSS * (WIDTH + GAP_X) - GAP_X + 30, TOP + rows * (HEIGHT + GAP_Y) - GAP_Y + 30
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            "<title>Hit shares of caches by size</title>", f"<style>{STYLE}</style>"]
    return "\n".join([*head, *body, "</svg>\n"])


if __name__ == "__main__":
    out, *results = sys.argv[1:]
    pathlib.Path(out).write_text(draw(read(results)))
