"""Hierarchical all-reduce: every group sums on its master, the masters sum by a ring, every master tells its group.

    [1]  1 2 3 -> 0     5 6 7 -> 4       groups of k = 4: all to the master, one after the other
    [2]           0 <-> 4                a ring of the p / k masters
    [3]  0 -> 1 2 3     4 -> 5 6 7       back, one after the other

Few rounds, many bytes: for small tensors, and where the wires inside a group are much faster than those between. Large
tensors go by the ring: who chooses by size is called `hybrid`.

Law: p ranks in groups of k, hence m = p / k masters; n bytes; alpha, beta, gamma as for the ring.
    rounds    2 (k - 1) + 2 (m - 1): 156 for p = 1,024 and k = 16, where a ring has 2,046 (the paper counts its first
              and last step twice, 4 (k - 1) + 2 (m - 1), and says 186)
    bytes     (k - 1) n + 2 n (m - 1) / m sent by a master, n by each other
    seconds   (k - 1) (2 (alpha + beta n) + gamma n) + 2 (m - 1) (alpha + beta n / m) + (m - 1) gamma n / m

Paper: Jia et al. (Tencent) 2018, arXiv 1807.11205.
"""

from __future__ import annotations

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.collectives import ring
from lt_core.collectives.compose import placed, there_and_back
from lt_core.collectives.rounds import ADD, Message, of_rounds
from lt_core.collectives.torus import squarest


def schedule(size: int, group: int | None = None) -> Schedule:
    """The hierarchy of `size` ranks over `size` chunks, in groups of `group` neighbours.

    group: k; about the square root of the ranks where it is not given (1, which is a ring, where ranks are prime).
    Errors: groups that do not divide the ranks.
    """
    each = _group(size, group)
    masters = range(0, size, each)
    up = [[Message(master + r, master, 0, ADD, size) for master in masters] for r in range(1, each)]
    top = placed(ring.rounds(len(masters)), masters, width=each)
    return of_rounds("hierarchical", size, there_and_back(up, top))  # [1], [2], [3]


def hybrid(size: int, nbytes: int, threshold_bytes: float, group: int | None = None) -> Schedule:
    """The ring for tensors of at least `threshold_bytes`, the hierarchy for smaller ones. Source: Tencent's hybrid."""
    return ring.schedule(size) if nbytes >= threshold_bytes else schedule(size, group)


def threshold_bytes(size: int, wire: Wire, group: int | None = None, inside: Wire | None = None) -> float:
    """From how many bytes on the ring is the faster one: 0, or infinity, if it is so always, or never."""
    free = Wire("no latency", 0.0, wire.bytes_per_s)
    quick = Wire("no latency", 0.0, (inside or wire).bytes_per_s)
    saved_s = ring.law_seconds(size, 0, wire) - law_seconds(size, 0, wire, group=group, inside=inside)
    more_s_per_byte = law_seconds(size, 1, free, group=group, inside=quick) - ring.law_seconds(size, 1, free)
    return max(0.0, saved_s / more_s_per_byte) if more_s_per_byte > 0 else float("inf")


def _group(size: int, group: int | None) -> int:
    each = max(1, size) // squarest(size) if group is None else group
    if each < 1 or size % each:
        raise UserError(f"{size} ranks are no hierarchy", f"groups of {each}", f"groups that divide {size}")
    return each


def law_rounds(size: int, group: int | None = None) -> int:
    """How many rounds: up, round twice, down."""
    each = _group(size, group)
    return 2 * (each - 1) + ring.law_rounds(size // each)


def law_messages(size: int, elements: int, rank: int, group: int | None = None) -> int:
    """How many messages `rank` sends; chunks without elements are not sent."""
    each = _group(size, group)
    if rank % each:
        return int(elements > 0)
    return (each - 1) * (elements > 0) + ring.law_messages(size // each, elements, rank // each)


def law_bytes(size: int, elements: int, itemsize: int, rank: int, group: int | None = None) -> int:
    """How many bytes `rank` sends."""
    each = _group(size, group)
    if rank % each:
        return elements * itemsize
    return (each - 1) * elements * itemsize + ring.law_bytes(size // each, elements, itemsize, rank // each)


def law_seconds(
    size: int,
    nbytes: int,
    wire: Wire,
    add_s_per_byte: float = 0.0,
    group: int | None = None,
    inside: Wire | None = None,
) -> float:
    """How long the all-reduce of `nbytes` takes over links that are all `wire`, exactly so where chunks are even.

    inside: another wire inside the groups, such as the one inside of a machine.
    """
    each = _group(size, group)
    star_s = (each - 1) * (2 * (inside or wire).seconds(nbytes) + nbytes * add_s_per_byte)
    return star_s + ring.law_seconds(size // each, nbytes, wire, add_s_per_byte)
