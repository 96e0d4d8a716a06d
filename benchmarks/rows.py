"""What a benchmark leaves: rows, each a ratio of ours to a peer's, below 1 where ours is better.

round    1        2        3              ours and the peer's take turns, so that what disturbs one disturbs the other;
ours     |--|     |--|     |--|           a row has the medians of both, and of the ratios of the rounds the median
peer         |--|     |--|     |--|       and both quartiles
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

ROUNDS = 7  # at least
Rounds = dict[str, list[float]]  # what each contender took, round by round


class Row(NamedTuple):
    """One comparison. `ratio` is ours / peer; `low` and `high` are its quartiles."""

    bench: str
    case: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    low: float
    high: float
    unit: str
    versions: Mapping[str, str]
    cores: int
    date: str

    def __str__(self) -> str:
        return json.dumps(self._asdict(), ensure_ascii=False)


def seconds(run: Callable[[], object]) -> Callable[[], float]:
    """How long each call of `run` takes, as what `compare` and `against_law` ask for."""

    def timed() -> float:
        start_s = perf_counter()
        run()
        return perf_counter() - start_s

    return timed


def compare(
    bench: str,
    case: str,
    ours: Callable[[], float],
    peer: Callable[[], float],
    peer_name: str,
    rounds: int = ROUNDS,
    unit: str = "s",
    packages: Iterable[str] = ("torch",),
) -> Row:
    """The row of `rounds` interleaved rounds, after one of each that does not count.

    ours, peer: run once and return what it took, in `unit`.  peer_name: the peer's own word; `plain` for the same work
    without the tool.  packages: whose versions matter.
    """
    if rounds < ROUNDS:
        raise ValueError(f"{rounds} rounds are too few; expected at least {ROUNDS}")
    ours(), peer()
    pairs = [(ours(), peer()) for _ in range(rounds)]
    return _row(bench, case, pairs, peer_name, unit, packages)


def against_law(
    bench: str, case: str, ours: Callable[[], float], law: float, rounds: int = ROUNDS, unit: str = "s"
) -> Row:
    """The row of `ours` against what a closed form allows."""
    return compare(bench, case, ours, lambda: law, "law", rounds, unit, ())


def slowest(by_rank: Sequence[Rounds]) -> Rounds:
    """Of each contender, for each round, what the rank took that took most."""
    return {name: [max(ranks) for ranks in zip(*(of[name] for of in by_rank), strict=True)] for name in by_rank[0]}


def compare_rounds(
    bench: str, case: str, found: Rounds, ours: str, peer: str, peer_name: str = "", unit: str = "s"
) -> Row:
    """The row of two contenders of rounds that are over, of which the first does not count."""
    turns = (iter(found[name]).__next__ for name in (ours, peer))
    return compare(bench, case, *turns, peer_name or peer, len(found[ours]) - 1, unit)


def _row(
    bench: str, case: str, pairs: list[tuple[float, float]], peer_name: str, unit: str, packages: Iterable[str]
) -> Row:
    low, ratio, high = quantiles([ours / peer for ours, peer in pairs], n=4, method="inclusive")
    medians = [median(values) for values in zip(*pairs, strict=True)]
    versions = {"python": python_version()} | {name: version(name) for name in packages}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    today = date.today().isoformat()
    return Row(bench, case, *medians, peer_name, ratio, low, high, unit, versions, cores, today)


def printed(rows: Iterable[Row]) -> list[Row]:
    """Each row as a JSON line, as soon as it is there; all of them at the end."""
    done = []
    for row in rows:
        print(row, flush=True)
        done.append(row)
    return done


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown, and below it what they were run on."""
    rows = list(rows)
    lines = ["| case | ours | peer | ratio | quartiles |", "|---|---|---|---|---|"]
    for r in rows:
        both = f"{r.ours:.3g} {r.unit} | {r.peer_name}: {r.peer:.3g} {r.unit}"
        lines.append(f"| {r.case} | {both} | {r.ratio:.2f} | {r.low:.2f} - {r.high:.2f} |")
    versions = {f"{name} {number}" for r in rows for name, number in r.versions.items()}
    cores = sorted({f"{r.cores} cores" for r in rows})
    return "\n".join([*lines, "", ", ".join([*sorted({r.date for r in rows}), *cores, *sorted(versions)]) + "."])


def write(path: Path, bench: str, rows: Iterable[Row]) -> None:
    """Put the table of one benchmark where its markers stand in a Markdown file; at the end where there are none."""
    start, end = f"<!-- {bench} -->", f"<!-- /{bench} -->"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if start not in text or end not in text:
        text = f"{text.rstrip()}\n\n## {bench}\n\n{start}\n{end}\n".lstrip()
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{start}\n{table(rows)}\n{end}{after}", encoding="utf-8")
