"""Rows a second by Rowtide and by other row stores: the same file, the same batch sizes, one run.

Cold: the file is evicted before each measurement and found evicted, and no block is read twice in the whole run, by
whomever; a batch of its own wakes each store before it is timed. Warm: everybody gathers the same rows, twice untimed and
then for half a second. Stores take turns, in an order that changes with the repeat; cold, the mapping comes after all
others, as the kernel goes on reading around its rows when it is done. All rows are checked against the rule the file was made by, outside of what is timed.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import numpy

import stores
from table_file import FreshRows, TableFile

COLD_ROWS = 4096  # of a measurement, if that is more than one batch
COLD_SECONDS = 3
WAKE_ROWS = 256
WARM_SECONDS = 0.5


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="Rowtide as a shared library")
    parser.add_argument("--dir", default=".", help="where to make the file (the current folder)")
    parser.add_argument("--size", type=float, default=4, help="its size in GiB (4)")
    parser.add_argument("--row-bytes", type=int, default=90, help="bytes of a row (90)")
    parser.add_argument("--batch", default="16,128,2048,32768", help="rows of a batch (16,128,2048,32768)")
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each kind (3)")
    parser.add_argument("--store", default=",".join(store.name for store in stores.ALL), help="which stores (all)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser.parse_args()


def progress(what, share):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{what} {share:4.0%} " + ("\r\033[K" if share >= 1 else ""))


def gather_all(store, batches, out):
    """Gathers batch after batch; seconds of each, and what came last."""
    prepare = getattr(store, "prepare", lambda ids: ids)
    prepared = [prepare(ids) for ids in batches]
    seconds, rows = [], []
    for ids in prepared:
        begin = time.perf_counter()
        rows.append(store.gather(ids, out[len(rows)]))
        seconds.append(time.perf_counter() - begin)
        if sum(seconds) > COLD_SECONDS:
            break
    return seconds, rows


def outputs(batches, row_bytes):
    return [numpy.zeros(len(ids) * row_bytes, dtype=numpy.uint8) for ids in batches]


def measure_cold(kind, table, fresh, batch):
    table.make_cold()
    count = max(COLD_ROWS // batch, 1)
    batches = [fresh.take(batch) for _ in range(count)]
    wake = fresh.take(min(batch, WAKE_ROWS))
    store = kind(table)
    try:
        if kind is not stores.Mapped:  # which has nothing to wake, and would keep what lies around these rows
            gather_all(store, [wake], outputs([wake], table.row_bytes))
            table.make_cold()
        seconds, rows = gather_all(store, batches, outputs(batches, table.row_bytes))
        for ids, got in zip(batches, rows):
            table.check(store.name, ids, got)
    finally:
        store.close()
    return seconds


def measure_warm(store, table, batches):
    prepare = getattr(store, "prepare", lambda ids: ids)
    prepared = [prepare(ids) for ids in batches]
    out = outputs(batches, table.row_bytes)
    for _ in range(2):
        for ids, into, asked in zip(prepared, out, batches):
            table.check(store.name, asked, store.gather(ids, into))
    seconds = []
    while sum(seconds) < WARM_SECONDS:
        for ids, into in zip(prepared, out):
            begin = time.perf_counter()
            store.gather(ids, into)
            seconds.append(time.perf_counter() - begin)
    return seconds


class Figures:
    """Rows a second of each store, state and batch, repeat by repeat."""

    def __init__(self):
        self.rates, self.batch_us = {}, {}

    def add(self, state, batch, name, seconds):
        key = (state, batch, name)
        self.rates.setdefault(key, []).append(batch * len(seconds) / sum(seconds))
        self.batch_us.setdefault(key, []).append(1e6 * statistics.median(seconds))

    def results(self):
        found = []
        for (state, batch, name), rates in self.rates.items():
            entry = {"store": name, "state": state, "batch_rows": batch, "rows_per_s": statistics.median(rates),
                     "least": min(rates), "most": max(rates), "p50_us": statistics.median(self.batch_us[state, batch, name])}
            ours = self.rates.get((state, batch, "rowtide"))
            if ours and name != "rowtide":
                ratios = sorted(a / b for a, b in zip(ours, rates))
                verdict = ("one run" if len(ratios) == 1 else "faster" if ratios[0] > 1 else
                           "slower" if ratios[-1] < 1 else "within the spread")
                entry["rowtide_to_it"] = {"ratio": statistics.median(ratios), "least": ratios[0], "most": ratios[-1],
                                          "verdict": verdict}
            found.append(entry)
        return found


def in_turn(things, repeat):
    """From another one on in each repeat, and in the other direction, so that nobody always follows the same."""
    begin = repeat % max(len(things), 1)
    turned = things[begin:] + things[:begin]
    return turned[::-1] if repeat % 2 else turned


def run_cold(given, kinds, table, figures, batches):
    fresh = FreshRows(table, int.from_bytes(os.urandom(8), "little"))
    first = [kind for kind in kinds if kind is not stores.Mapped]
    for some in first, [kind for kind in kinds if kind is stores.Mapped]:
        for repeat in range(given.repeat):
            for batch in batches:
                for kind in in_turn(some, repeat):
                    figures.add("cold", batch, kind.name, measure_cold(kind, table, fresh, batch))
            progress("cold", (repeat + 1) / given.repeat)


def run_warm(given, kinds, table, figures, batches):
    random = numpy.random.default_rng(1)
    ids = {batch: [random.integers(0, table.rows, batch) for _ in range(max(32768 // batch, 1))] for batch in batches}
    opened = [kind(table) for kind in kinds]
    for repeat in range(given.repeat):
        for batch in batches:
            for store in in_turn(opened, repeat):
                figures.add("warm", batch, store.name, measure_warm(store, table, ids[batch]))
        progress("warm", (repeat + 1) / given.repeat)
    for store in opened:
        store.close()


def show(report):
    print(f"{report['rows']:,} rows of {report['row_bytes']} bytes, repeats {report['repeat']}, load average "
          f"{report['load_average_before']:.1f} before and {report['load_average_after']:.1f} after")
    print(f"{'state':6}{'batch':>7}  {'store':10}{'rows/s':>12}{'least':>12}{'most':>12}{'p50 us':>12}  rowtide against it")
    for entry in report["results"]:
        against = entry.get("rowtide_to_it")
        text = (f"{against['ratio']:.2f} ({against['least']:.2f} to {against['most']:.2f}) {against['verdict']}"
                if against else "-")
        print(f"{entry['state']:6}{entry['batch_rows']:>7}  {entry['store']:10}{entry['rows_per_s']:>12,.0f}"
              f"{entry['least']:>12,.0f}{entry['most']:>12,.0f}{entry['p50_us']:>12,.1f}  {text}")


def main():
    given = options()
    stores.Rowtide.library = given.library
    kinds = [kind for kind in stores.ALL if kind.name in given.store.split(",")]
    batches = [int(batch) for batch in given.batch.split(",")]
    figures = Figures()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="rowtide-peers-", dir=given.dir) as folder:
        table = TableFile(folder, int(given.size * 2**30), given.row_bytes, progress)
        run_cold(given, kinds, table, figures, batches)
        run_warm(given, kinds, table, figures, batches)
        report = {"rows": table.rows, "row_bytes": table.row_bytes, "repeat": given.repeat, "load_average_before": load,
                  "load_average_after": os.getloadavg()[0], "results": figures.results()}
    if given.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
