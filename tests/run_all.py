"""make test and make check: run every part, then say what was dear, what was skipped, and which parts failed.

A failing part fails the whole, but the later parts still run. With CI=true the number of skips must be the one that
.ci/skips states, so that a test which stopped running is noticed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
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


PYTEST = ["pytest", "-q", "--continue-on-collection-errors", "-p", "tests.report"]
STYLE = [
    Part("format", ["ruff", "format", "--check", "."]),
    Part("lint", ["ruff", "check", "."]),
    Part("types", ["mypy"]),
]
QUICK = [*STYLE, Part("tests", [*PYTEST, "--quick", "--ignore=tests/browser", "tests"], reports=True)]
LABS = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=60", "--timeout=120", "-p", "tests.guards"]
ALL = [
    *STYLE,
    Part("tests", [*PYTEST, "--ignore=tests/browser", "tests"], reports=True),
    Part("labs", [*PYTEST, *LABS, "labs/solutions"], reports=True),
    Part("browser", [*PYTEST, "tests/browser"], reports=True),
]


def main() -> int:
    """Run the parts and return the exit code: 0 if nothing failed."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = [run(part, Path(folder)) for part in (QUICK if "--quick" in sys.argv else ALL)]
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


def run(part: Part, folder: Path) -> Result:
    """Run one part, its output going straight to the terminal."""
    path = folder / f"{part.name}.json"
    command = [sys.executable, "-m", *part.arguments, *([f"--report={path}"] if part.reports else [])]
    print(f"\n== {part.name}: {' '.join(part.arguments)}", flush=True)
    start = time.monotonic()
    try:
        code = subprocess.run(command, cwd=ROOT, timeout=PART_LIMIT_S).returncode
    except subprocess.TimeoutExpired:
        print(f"{part.name} was ended: it ran longer than {PART_LIMIT_S} s")
        code = 1
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
