"""Which all-reduce is the fastest here: the laws of all of them, priced for a machine, and where the answer changes.

    choose(cluster, 8, 10_000).name        recursive doubling
    crossovers(cluster, 8)                 [(0, "recursive doubling"), (30_001, "halving-doubling")]

    seconds |        / doubling      A law is a straight line over the bytes: alpha times its rounds, then beta times
            |   ...:'_ halving       what a rank sends. So the fastest is their lower edge, on which each line has one
            |_-'                     stretch at most.
            +--------- bytes

Over several nodes messages share NICs, which no law prices: there each algorithm is simulated instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple, Protocol

from lt_core.base.cluster import Cluster, Wire
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.base.units import bounds, seconds_text
from lt_core.collectives import double_tree, doubling, halving, hierarchical, naive, ring, torus, tree
from lt_core.collectives.checks import units
from lt_core.engine.costs import of_cluster
from lt_core.engine.simulate import simulate

EQUAL = 1 + 1e-9  # two laws that say the same in other words differ by rounding


class Algorithm(Protocol):
    """What is asked of an all-reduce: a module such as `ring`."""

    def schedule(self, size: int) -> Schedule:
        """Who sends what to whom."""
        ...

    def law_seconds(self, size: int, nbytes: int, wire: Wire, add_s_per_byte: float = 0.0) -> float:
        """How long it takes."""
        ...


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {  # of those that are equally fast the first is chosen
        "naive": naive,
        "tree": tree,
        "recursive doubling": doubling,
        "halving-doubling": halving,
        "ring": ring,
        "torus": torus,
        "hierarchical": hierarchical,
        "double tree": double_tree,
    }
)


class Choice(NamedTuple):
    """An algorithm, made for a machine and a tensor: its seconds, and the call that makes its schedule."""

    name: str
    seconds: float
    schedule: Callable[[], Schedule]
    why: str = ""


def choose(
    cluster: Cluster,
    size: int,
    nbytes: int,
    add_s_per_byte: float = 0.0,
    among: Mapping[str, Algorithm] = ALGORITHMS,
) -> Choice:
    """The fastest way to sum `nbytes` over the first `size` ranks of a cluster, such as `comm.here.here(comm)`.

    Errors: more ranks than the cluster has; bytes or seconds that are no such number; nothing to choose among.
    """
    priced = choices(cluster, size, nbytes, add_s_per_byte, among)
    least_s = min(choice.seconds for choice in priced)
    first = next(choice for choice in priced if choice.seconds <= least_s * EQUAL)
    said = [f"{choice.name} {seconds_text(choice.seconds)}" for choice in sorted(priced, key=lambda c: c.seconds)]
    source = "simulated" if size > cluster.per_node else "by law"
    return first._replace(why=f"{first.name} takes {seconds_text(first.seconds)} {source}, of {', '.join(said)}")


def choices(
    cluster: Cluster,
    size: int,
    nbytes: int,
    add_s_per_byte: float = 0.0,
    among: Mapping[str, Algorithm] = ALGORITHMS,
) -> list[Choice]:
    """All of them, priced: each at its best settings for this machine and tensor."""
    if not 1 <= size <= cluster.size:
        raise UserError(f"{cluster.name} has {cluster.size} ranks", f"{size} ranks", f"1 to {cluster.size}")
    if not 0 <= nbytes < float("inf"):
        raise UserError("a tensor has bytes", nbytes, "0 or more")
    if not 0 <= add_s_per_byte < float("inf"):
        raise UserError("to add takes so many seconds a byte", add_s_per_byte, "0 or more")
    if not among:
        raise UserError("there is nothing to choose among", attempt="choose.ALGORITHMS, or some of them")
    found = []
    for name, algorithm in among.items():
        settings = _settings(algorithm, cluster, size, nbytes)
        schedule = partial(algorithm.schedule, size, **settings)
        if size <= cluster.per_node:
            seconds = algorithm.law_seconds(size, nbytes, cluster.inner, add_s_per_byte, **settings)
        else:
            seconds = simulated(schedule(), cluster, nbytes, add_s_per_byte).makespan_s()
        found.append(Choice(name, seconds, schedule))
    return found


def _settings(algorithm: Algorithm, cluster: Cluster, size: int, nbytes: int) -> dict[str, int]:
    if algorithm is double_tree:
        between = cluster.outer if size > cluster.per_node else None
        return {"pieces": double_tree.best_pieces(size, nbytes, between or cluster.inner)}
    name = {hierarchical: "group", torus: "columns"}.get(algorithm)  # type: ignore[call-overload]
    each = cluster.per_node
    return {name: each} if name and each < size and size % each == 0 else {}


def simulated(schedule: Schedule, cluster: Cluster, nbytes: int, add_s_per_byte: float = 0.0) -> Trace:
    """The schedule over `nbytes` on a cluster, in chunks of whole bytes."""
    parts = units(schedule)
    cuts = [bounds(nbytes, unit, parts) for unit in range(parts)]
    return simulate(schedule, of_cluster(cluster, [b - a for a, b in cuts], add_s_per_byte=add_s_per_byte))


def crossovers(
    cluster: Cluster,
    size: int,
    most_bytes: int = 1 << 30,
    add_s_per_byte: float = 0.0,
    among: Mapping[str, Algorithm] = ALGORITHMS,
) -> list[tuple[int, str]]:
    """From how many bytes on which is the fastest, up to `most_bytes`: [(0, ...), (30_001, ...)].

    Found by halving: between two sizes with the same fastest one nothing is looked at. None is missed where prices
    are straight lines, of which each has one stretch of the lower edge; where they are not (over several nodes, or a
    double tree in as many pieces as are best) one that is the fastest for a while in between may be.
    """

    @cache
    def best(nbytes: int) -> str:
        return choose(cluster, size, nbytes, add_s_per_byte, among).name

    def between(low: int, high: int) -> list[tuple[int, str]]:
        if best(low) == best(high):
            return []
        middle = (low + high) // 2
        return [(high, best(high))] if middle == low else between(low, middle) + between(middle, high)

    return [(0, best(0)), *between(0, most_bytes)]
