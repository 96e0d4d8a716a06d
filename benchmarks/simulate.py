"""The simulator against its bound: 100,000 actions a second, each transfer counted as the two actions that it is.

The first row times `simulate` alone, the graph of the schedule made; the second builds, checks and simulates a million
actions in a process of its own, whose largest memory is the third.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import NamedTuple

from benchmarks.rows import Row, against_law, printed, seconds
from lt_core.collectives import ring
from lt_core.engine.costs import Unit
from lt_core.engine.simulate import simulate

BENCH = "simulate"
ACTIONS_PER_S = 100_000
SMALL, LARGE = 128, 512  # ranks of a ring
COSTS = Unit(alpha=1.0, beta=1.0, gamma=1.0)


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    schedule = ring.schedule(SMALL).check()  # its graph is made
    law_s = actions(SMALL) / ACTIONS_PER_S
    yield against_law(BENCH, "actions, 65k", seconds(lambda: simulate(schedule, COSTS)), law_s)
    runs: list[Million] = []

    def million() -> float:
        runs.append(Million.of_new_process())
        return runs[-1].seconds

    yield against_law(BENCH, "actions, 1M", million, actions(LARGE) / ACTIONS_PER_S)
    peaks = iter(runs)
    yield against_law(BENCH, "actions, 1M, memory", lambda: next(peaks).peak_bytes, 2**30, unit="B")


def actions(size: int) -> int:
    """Both ends of each message of a ring: in 2 (p - 1) rounds every rank sends one."""
    return 2 * 2 * (size - 1) * size


class Million(NamedTuple):
    """A million actions, built, checked and simulated."""

    seconds: float
    peak_bytes: int

    @staticmethod
    def run() -> "Million":
        """In this process."""
        start_s = perf_counter()
        schedule = ring.schedule(512).check()
        simulate(schedule, COSTS)
        passed_s = perf_counter() - start_s
        unit = 1 if sys.platform == "darwin" else 1024
        return Million(passed_s, getrusage(RUSAGE_SELF).ru_maxrss * unit)

    @staticmethod
    def of_new_process() -> "Million":
        """In a process of its own, so that the memory is its alone (torch, which the package imports, included)."""
        script = "import json; from benchmarks.simulate import Million; print(json.dumps(Million.run()))"
        command, here = [sys.executable, "-c", script], Path(__file__).parents[1]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=300, check=True)
        return Million(*json.loads(done.stdout))


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
