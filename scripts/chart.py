#!/usr/bin/env python3
"""Draws reports of `rowtide bench rows --json` as bars: rows a second of each method, one group of bars a report.

    scripts/chart.py --batch 2048 cold.json warm.json > chart.svg

The scale is logarithmic, since cold and warm lie a thousandfold apart. A thin line spans the repeats.
"""
import argparse
import json
import math

WIDTH, LEFT, RIGHT = 760, 150, 110
BAR, GAP, HEAD = 16, 5, 34
COLOURS = {"rowtide": "#1f6feb"}
OTHERS = "#9aa4b2"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", nargs="+", help="what `rowtide bench rows --json` printed")
    parser.add_argument("--batch", type=int, required=True, help="rows of the batches to draw")
    return parser.parse_args()


def bars_of(report, batch):
    """(method, median, least, most), fastest first; methods that know no rows are left out."""
    found = [(r["method"], r["rows_per_s"], r["least"], r["most"]) for r in report["results"]
             if r["batch_rows"] == batch and r["rows_per_s"]]
    if not found:
        raise SystemExit(f"a report has no batches of {batch} rows")
    return sorted(found, key=lambda bar: -bar[1])


def number(value):
    for unit, name in [(1e9, "G"), (1e6, "M"), (1e3, "k")]:
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g}"


class Drawing:
    def __init__(self, low, high):
        self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        self.y, self.parts = 10, []

    def x(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def text(self, x, y, words, anchor="start", weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>')

    def line(self, x1, y1, x2, y2, colour):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')

    def group(self, title, bars):
        self.text(LEFT, self.y + 14, title, weight="bold")
        self.y += HEAD - BAR
        top = self.y
        for method, median, least, most in bars:
            self.y += GAP
            middle = self.y + BAR / 2
            colour = COLOURS.get(method, OTHERS)
            self.text(LEFT - 8, middle + 4, method, "end")
            self.parts.append(f'<rect x="{LEFT}" y="{self.y}" width="{self.x(median) - LEFT:.1f}" height="{BAR}" '
                              f'fill="{colour}"/>')
            self.line(self.x(least), middle, self.x(most), middle, "#24292f")
            self.text(self.x(max(median, most)) + 6, middle + 4, number(median))
            self.y += BAR
        for power in range(self.low, self.high + 1):
            self.line(self.x(10 ** power), top, self.x(10 ** power), self.y + 4, "#d0d7de")
        self.y += 20

    def axis(self):
        for power in range(self.low, self.high + 1):
            self.text(self.x(10 ** power), self.y, number(10 ** power), "middle")
        self.text(LEFT, self.y + 20, "rows a second, logarithmic; median, and a line over the repeats")
        self.y += 32

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.y}" font-family="sans-serif" '
                f'font-size="12">\n<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(self.parts) +
                "\n</svg>")


def main():
    given = arguments()
    reports = []
    for path in given.report:
        with open(path, encoding="utf-8") as file:
            reports.append(json.load(file))
    groups = [(report, bars_of(report, given.batch)) for report in reports]
    values = [value for _, bars in groups for bar in bars for value in bar[1:]]
    drawing = Drawing(min(values), max(values))
    for report, bars in groups:
        drawing.group(f"{report['state']}, {report['trace']} rows of {report['row_bytes']} bytes, batches of "
                      f"{given.batch:,}", bars)
    drawing.axis()
    print(drawing.svg())


if __name__ == "__main__":
    main()
