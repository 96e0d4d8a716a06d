"""make test and make check: run every part, then say what was dear, what was skipped, and which parts failed.

Rounds follow each other; in a round lanes run side by side, since tests that start ranks wait half of their time. A
failing part fails the whole, but the later parts still run. With CI=true the number of skips must be the one that
.ci/skips states, so that a test which stopped running is noticed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PART_LIMIT_S, LAB_LIMIT_S, LABS_LIMIT_S = 2400, 60, 600


class Part(NamedTuple):
    """One program to run; `reports`: it is pytest and writes a report."""

    name: str
    arguments: list[str]
    reports: bool = False


class Result(NamedTuple):
    """How a part ended: its exit code, its seconds, and what its tests reported."""

    name: str
    code: int
    seconds: float
    report: dict[str, dict]


Lane = list[Part]
Round = list[Lane]

PYTEST = ["pytest", "-q", "--continue-on-collection-errors", "-p", "tests.report"]
LABS = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=60", "--timeout=120", "-p", "tests.guards"]
STARTS = ["tests/comm", "tests/magics", "tests/cli"]  # most of their time ranks are starting or ending
PAGES = ["tests/teaching", "tests/labs", "tests/views", "tests/test_guards.py"]
BROWSER = "tests/browser"


def pytest_parts(apart: dict[str, list[str]], *options: str) -> list[Part]:
    """Return all tests but the browser's: a part for each that stands apart, and the rest."""
    command = [*PYTEST, *options]
    ignored = [f"--ignore={place}" for place in [*chain(*apart.values()), BROWSER]]
    places = {**apart, "tests": [*ignored, "tests"]}
    return [Part(name, [*command, *words], reports=True) for name, words in places.items()]


def quick() -> list[Round]:
    """Return what `make check` runs: two parts of equal length, for each pays its imports anew."""
    faces, rest = pytest_parts({"faces": [*STARTS, *PAGES]}, "--quick")
    return [STYLE, [[faces], [TYPES, rest]]]


def everything() -> list[Round]:
    """Return what `make test` runs."""
    starts, pages, rest = pytest_parts({"starts": STARTS, "pages": PAGES})
    labs = Part("labs", [*PYTEST, *LABS, "labs/solutions"], reports=True)
    return [
        STYLE,
        [[TYPES, rest, pages], [starts]],
        [[labs, Part("browser", [*PYTEST, BROWSER], reports=True)]],
    ]


STYLE = [[Part("format", ["ruff", "format", "--check", "."]), Part("lint", ["ruff", "check", "."])]]
TYPES = Part("types", ["mypy"])


def main() -> int:
    """Run the parts and return the exit code: 0 if nothing failed."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rounds = quick() if "--quick" in sys.argv else everything()
        results = [result for lanes in rounds for result in side_by_side(lanes, Path(folder))]
    failed = [result.name for result in results if result.code] + too_slow(results)
    skips = {test: why for result in results for test, why in result.report.get("skips", {}).items()}
    if os.environ.get("CI") == "true":
        failed += skip_faults(len(skips), int((ROOT / ".ci/skips").read_text().split()[0]))
    print("\n".join(["", *costs(results), *listing(f"Skipped: {len(skips)}", skips.items())]))
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    print(f"\n{'FAILED: ' + '; '.join(failed) if failed else 'Everything passed'} ({minutes} min {seconds} s)")
    counts = sum((Counter(result.report.get("counts", {})) for result in results), Counter())
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return bool(failed)


def side_by_side(lanes: Round, folder: Path) -> Iterator[Result]:
    """Run the lanes; the first one's output comes as it goes, that of the others when a part of theirs has ended."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        beside = [
            pool.submit(lambda lane: [run(part, folder, live=False) for part in lane], lane) for lane in lanes[1:]
        ]
        yield from [run(part, folder) for part in lanes[0]]
        for lane in beside:
            yield from lane.result()


def run(part: Part, folder: Path, live: bool = True) -> Result:
    """Run one part, its output going straight to the terminal, or all at once in the end."""
    path = folder / f"{part.name}.json"
    command = [sys.executable, "-m", *part.arguments, *([f"--report={path}"] if part.reports else [])]
    title = f"\n== {part.name}: {' '.join(part.arguments)}"
    print(title if live else f"\n== {part.name} runs beside", flush=True)
    start = time.monotonic()
    with open(folder / f"{part.name}.txt", "w+", encoding="utf-8", errors="replace") as output:
        stream = {} if live else {"stdout": output, "stderr": subprocess.STDOUT}
        try:
            code = subprocess.run(command, cwd=ROOT, timeout=PART_LIMIT_S, **stream).returncode
        except subprocess.TimeoutExpired:
            print(f"{part.name} was ended: it ran longer than {PART_LIMIT_S} s")
            code = 1
        output.seek(0)
        if not live:
            print(f"{title}\n{output.read()}", flush=True)
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return Result(part.name, code, time.monotonic() - start, report)


def too_slow(results: list[Result]) -> list[str]:
    """Return what is wrong with the time that the labs took."""
    labs = {test: s for test, s in by_place(results).items() if test.endswith(".ipynb")}
    slow = [f"{lab} took {s:.0f} s, at most {LAB_LIMIT_S}" for lab, s in labs.items() if s > LAB_LIMIT_S]
    total = sum(labs.values())
    return slow + [f"the labs took {total:.0f} s, at most {LABS_LIMIT_S}"] * (total > LABS_LIMIT_S)


def skip_faults(got: int, expected: int) -> list[str]:
    """Return what is wrong with the number of skipped tests."""
    return [] if got == expected else [f"{got} tests were skipped, .ci/skips expects {expected}"]


def by_place(results: list[Result]) -> Counter[str]:
    """Return seconds by folder of tests/ (or file that stands there) and by lab."""
    places: Counter[str] = Counter()
    for result in results:
        for test, seconds in result.report.get("seconds", {}).items():
            file = test.split("::")[0]
            places[file if file.endswith(".ipynb") else "/".join(file.split("/")[:2])] += seconds
    return places


def costs(results: list[Result]) -> list[str]:
    """Return the ten dearest tests, and seconds by part and by place, as lines."""
    tests = sum((Counter(result.report.get("seconds", {})) for result in results), Counter())
    return [
        *listing("The ten dearest", seconds(tests.most_common(10))),
        *listing("By place", seconds(by_place(results).most_common())),
        *listing("By part", seconds((result.name, result.seconds) for result in results)),
    ]


def seconds(rows):
    return [(f"{value:7.1f} s", name) for name, value in rows]


def listing(title: str, rows) -> list[str]:
    return [f"-- {title}", *(f"  {left}  {right}" for left, right in rows)]


if __name__ == "__main__":
    sys.exit(main())
