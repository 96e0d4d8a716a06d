"""pytest -p tests.report --report FILE: seconds by test, counts, and skips, as JSON for `tests.run_all`.

With --quick, tests that start processes, a browser or a GPU are left out (the fixture `ranks` marks itself), and what
the full round has beyond it: tests on more than 4 threads as ranks, and what is marked `full`.
"""

import gc
import json
from collections import Counter
from pathlib import Path

import pytest

SLOW = ("processes", "browser", "gpu", "full")
QUICK_RANKS = 4


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--report", type=Path, help="write seconds, counts and skips to this JSON file")
    parser.addoption("--quick", action="store_true", help="leave out what starts processes, and what is large")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--report"):
        config.pluginmanager.register(Report(config.getoption("--report")))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    gc.freeze()  # else the interpreter looks for 40 s through all that thousands of tests have left, before it ends


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        slow = {item for item in items if is_slow(item)}
        config.hook.pytest_deselected(items=[*slow])
        items[:] = [item for item in items if item not in slow]


def is_slow(item: pytest.Item) -> bool:
    """Whether it is marked so, asks for the fixture `processes`, or has a `size` of `ranks` of the full round alone."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    large = "ranks" in params and isinstance(params.get("size"), int) and params["size"] > QUICK_RANKS
    return large or any(map(item.get_closest_marker, SLOW)) or "processes" in getattr(item, "fixturenames", ())


class Report:
    """What one pytest run has to say: seconds by test, counts by outcome, reasons of skips by test."""

    def __init__(self, path: Path):
        self.path = path
        self.seconds: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.skips: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.skipped:
            self.skip(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.counts["failed"] += 1
        if report.skipped:
            self.counts["skipped"] += 1
            self.skip(report)

    def skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Note why a test, or a module at its collection, was skipped; an xfail counts too, it hides as well."""
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
        self.skips[report.nodeid] = str(reason).removeprefix("Skipped: ")

    def pytest_sessionfinish(self) -> None:
        found = {"seconds": self.seconds, "counts": self.counts, "skips": self.skips}
        self.path.write_text(json.dumps(found), encoding="utf-8")
