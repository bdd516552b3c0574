"""Sets published figures against what `rowtide plan` estimates, as tables in docs/sizing.md.

    sizing_table.py PROGRAM          writes them between the document's markers
    sizing_table.py PROGRAM --check  only says whether they are up to date; exit code 1 if not
"""
import json
import pathlib
import shlex
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
DOCUMENT, FIGURES = DOCS / "sizing.md", DOCS / "sizing_figures.json"
BEGIN, END = "<!-- made by scripts/sizing_table.py -->", "<!-- end -->"
SWEPT = "--prompt 128 --output 128"  # tokens of a request in the published sweeps


class Planner:
    """Plans of the program, each made once."""

    def __init__(self, program):
        self.program = program
        self.plans = {}

    def plan(self, options):
        if options not in self.plans:
            done = subprocess.run([self.program, "plan", *shlex.split(options), "--json"], capture_output=True, text=True,
                                  check=False)
            if done.returncode not in (0, 1):  # 1: does not fit, or no released engine runs it; estimated all the same
                raise SystemExit(f"rowtide plan {options}: {done.stderr.strip()}")
            self.plans[options] = json.loads(done.stdout)
        return self.plans[options]


def found(plan, path):
    """A value of a plan's JSON, or the sum of several; an entry of a list is named by its name."""
    if isinstance(path, list):
        return sum(found(plan, each) for each in path)
    value = plan
    for step in path.split("."):
        value = value[step] if isinstance(value, dict) else next(entry for entry in value if entry["name"] == step)
    return value


def error(estimate, measured, is_input):
    """In percent; a figure that the estimate was made from is marked."""
    percent = round((estimate / measured - 1) * 100)
    return f"{percent:+d} %{' (in)' if is_input else ''}" if percent else f"0 %{' (in)' if is_input else ''}"


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"


def level(planner, sweep, concurrency):
    """Estimates at a level of a sweep. More requests than slots wait for as many whole requests as are before them."""
    running = min(concurrency, sweep.get("slots", concurrency))
    speed = planner.plan(f"{sweep['options']} {SWEPT} --concurrency {running}")["speed"]
    tokens = 128
    waited_ms = (concurrency / running - 1) * tokens / speed["request_tok_s"] * 1e3
    whole_ms = tokens / speed["request_tok_s"] * 1e3 + waited_ms
    return {"ttft_ms": speed["ttft_ms"] + waited_ms, "request_tok_s": tokens / whole_ms * 1e3}


def sweep_table(planner, sweep):
    yield f"**{sweep['title']}**\n"
    yield "| streams | first token, ms: published | estimate | error | request, tok/s: published | estimate | error |"
    yield "|---|---|---|---|---|---|---|"
    for row in sweep["levels"]:
        estimates = level(planner, sweep, row["concurrency"])
        cells = [str(row["concurrency"])]
        for key in ("ttft_ms", "request_tok_s"):
            if key in row:
                is_input = row.get("input") in (True, key)
                cells += [number(row[key]), number(estimates[key]), error(estimates[key], row[key], is_input)]
            else:
                cells += ["", number(estimates[key]), ""]
        yield f"| {' | '.join(cells)} |"
    yield ""


def estimate_of(planner, figure):
    if "drive_batch" in figure:
        drive = planner.plan("--model Qwen3.8-Flash-Next --device dgx-spark")["machine"]["drive"]
        rows = figure["drive_batch"]
        return rows * drive["serial_us"] / (drive["serial_us"] + rows / drive["reads_per_s"] * 1e6)
    value = found(planner.plan(figure["options"]), figure["path"]) / figure.get("scale", 1)
    if "less" in figure:
        value -= found(planner.plan(figure["less"]), figure["path"]) / figure.get("scale", 1)
    if "over" in figure:
        return (value / found(planner.plan(figure["over"]), figure["path"]) - 1) * 100
    return value


def figure_table(planner, figures):
    yield "| figure | published | estimate | error | |"
    yield "|---|---|---|---|---|"
    for figure in figures:
        estimate, measured = estimate_of(planner, figure), figure["measured"]
        if figure["unit"] == "%":
            difference = f"{estimate - measured:+.0f} points"
        else:
            difference = error(estimate, measured, figure.get("input"))
        yield (f"| {figure['what']} | {number(measured)} {figure['unit']} | {number(estimate)} {figure['unit']} | "
               f"{difference} | {figure.get('note', '')} |")


def tables(planner):
    data = json.loads(FIGURES.read_text())
    lines = []
    for sweep in data["sweeps"]:
        lines += sweep_table(planner, sweep)
    lines += figure_table(planner, data["figures"])
    return "\n".join(lines)


def main(arguments):
    if not arguments or len(arguments) > 2 or arguments[1:] not in ([], ["--check"]):
        raise SystemExit(__doc__)
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = f"{before}{BEGIN}\n\n{tables(Planner(arguments[0]))}\n\n{END}{after}"
    if made == text:
        return 0
    if "--check" in arguments:
        print("docs/sizing.md is not what `rowtide plan` says now: run scripts/sizing_table.py build/rowtide")
        return 1
    DOCUMENT.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
