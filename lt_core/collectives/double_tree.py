"""Double binary tree: two trees sum half of the tensor each, and who is a branch in one is a leaf in the other.

         8              1    8 ranks, here called 1 to 8. The lowest bit says how high a rank stands in the first tree,
     4              5        hence its branches are even; the second is the first with every rank one further, hence
   2   6          3   7      its branches are odd. Half of the ranks are leaves, whose wires one tree would leave idle.
  1 3 5 7        2 4 6 8

[1] Pieces climb one behind the other, one in two rounds. Each rank has a colour, 0 or 1, which says whether it climbs
    the first tree in even or in odd rounds; the second in the others. Siblings have different colours, in both trees
    [2]: so nobody ever sends two pieces in a round, or takes two.
[3] The same rounds backwards.

Law: p ranks, n bytes in s pieces a tree, the first piece is up after L rounds; alpha, beta, gamma as for the ring.
    rounds    4 (s - 1) + 2 L, where floor(log2 p) <= L <= 2 floor(log2 p); 2 s for two ranks
    bytes     2 n sent by a rank at most: half as a branch (1 up, 2 down) and half as a leaf (1 up)
    seconds   at most rounds (alpha + beta n / 2 s + gamma n / 4 s), for some ranks are a round early; never below
              2 beta n for p >= 4

Where rounds cost most: 1,024 ranks and 4 pieces take 52, a ring 2,046; but the ring sends fewer bytes.
Paper: Sanders, Speck and Traeff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"; NCCL 2.4.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.base.units import bounds
from lt_core.collectives.compose import there_and_back
from lt_core.collectives.rounds import ADD, Message, Round, of_rounds

PIECES = 8  # of each tree's half: enough to fill it at a handful of ranks
MOST = 64


class Climb(NamedTuple):
    """A rank's way up in a tree (0 or 1): its parent, and the round in which its first piece goes there."""

    tree: int
    rank: int
    parent: int
    first: int


def schedule(size: int, pieces: int = PIECES) -> Schedule:
    """The two trees of `size` ranks over `2 pieces` chunks: the first half climbs one tree, the second the other."""
    if pieces < 1:
        raise UserError("a double tree sends pieces", pieces, "at least 1")
    up: list[Round] = [[] for _ in range(law_rounds(size, pieces) // 2)]
    every = min(2, first_up(size))  # two ranks need no turns
    for way in climbs(size):
        for piece in range(pieces):
            message = Message(way.rank, way.parent, way.tree * pieces + piece, ADD)
            up[way.first + every * piece].append(message)
    return of_rounds("double tree", size, there_and_back(up))  # [1], [3]


def parent(number: int, size: int) -> int | None:
    """The rank above, where ranks are called 1 to `size`: its lowest bit is one higher. None for the root."""
    lowest = number & -number
    if number == lowest and 2 * lowest > size:
        return None
    above = (number - lowest) | (2 * lowest)
    return above if above <= size else number - lowest


def edges(size: int, tree: int) -> list[tuple[int, int]]:
    """(rank, parent) in tree 0 or 1, children before parents."""
    upwards = sorted(range(1, size + 1), key=lambda number: number & -number)
    pairs = [(number, parent(number, size)) for number in upwards]
    return [((a - 1 + tree) % size, (b - 1 + tree) % size) for a, b in pairs if b is not None]


def colours(size: int) -> list[int]:
    """A colour for each rank, such that siblings differ in both trees [2]: 0 1 0 1 from sibling to sibling."""
    siblings, colour = _siblings(size), dict[int, int]()
    for start in range(size):
        todo = [(start, start % 2)]  # a leaf that nobody binds climbs in the first round
        while todo:
            rank, mine = todo.pop()
            if rank not in colour:
                colour[rank] = mine
                todo += [(other, 1 - mine) for other in siblings[rank]]
    return [colour[rank] for rank in range(size)]


def _siblings(size: int) -> list[list[int]]:
    """Of each rank: the other child of its parent, in either tree."""
    siblings: list[list[int]] = [[] for _ in range(size)]
    for tree in (0, 1):
        families: dict[int, list[int]] = {}
        for rank, above in edges(size, tree):
            for other in families.setdefault(above, []):
                siblings[rank].append(other)
                siblings[other].append(rank)
            families[above].append(rank)
    return siblings


def climbs(size: int) -> list[Climb]:
    """Everybody's ways up in both trees."""
    colour, ways = colours(size), list[Climb]()
    for tree in (0, 1):
        ready = [0] * size  # the round from which a rank has heard of all its children
        for rank, above in edges(size, tree):
            first = ready[rank] + (ready[rank] + colour[rank] + tree) % 2  # the next one of its colour
            ready[above] = max(ready[above], first + 1)
            ways.append(Climb(tree, rank, above, first))
    return ways


def first_up(size: int) -> int:
    """After how many rounds the first piece has climbed both trees: L."""
    return max((way.first + 1 for way in climbs(size)), default=0)


def law_rounds(size: int, pieces: int = PIECES) -> int:
    """How many rounds: the first piece up, the others behind it, and all of that backwards."""
    up = first_up(size)
    return 2 * (up + min(2, up) * (pieces - 1))


def law_messages(size: int, elements: int, rank: int, pieces: int = PIECES) -> int:
    """How many messages `rank` sends; pieces without elements are not sent."""
    cuts = [bounds(elements, unit, 2 * pieces) for unit in range(2 * pieces)]
    filled = [sum(1 for low, high in cuts[tree * pieces :][:pieces] if high > low) for tree in (0, 1)]
    return sum(filled[tree] * _ends(size, tree, rank) for tree in (0, 1))


def law_bytes(size: int, elements: int, itemsize: int, rank: int) -> int:
    """How many bytes `rank` sends: half of the tensor over each edge that it ends, up or down."""
    halves = [high - low for low, high in (bounds(elements, tree, 2) for tree in (0, 1))]
    return itemsize * sum(halves[tree] * _ends(size, tree, rank) for tree in (0, 1))


def _ends(size: int, tree: int, rank: int) -> int:
    """How many edges of a tree end at `rank`."""
    return sum(edge.count(rank) for edge in edges(size, tree))


def law_seconds(size: int, nbytes: int, wire: Wire, add_s_per_byte: float = 0.0, pieces: int = PIECES) -> float:
    """How long the all-reduce of `nbytes` takes at most, over links that are all `wire`."""
    piece_bytes = nbytes / (2 * pieces)
    round_s = wire.latency_s + piece_bytes / wire.bytes_per_s + piece_bytes * add_s_per_byte / 2
    return law_rounds(size, pieces) * round_s


def best_pieces(size: int, nbytes: int, wire: Wire) -> int:
    """How many pieces make `law_seconds` least, where adding costs nothing: sqrt((L - 2) beta n / (4 alpha))."""
    if wire.latency_s == 0:
        return MOST
    wanted = max(0, first_up(size) - 2) * nbytes / wire.bytes_per_s / (4 * wire.latency_s)
    return min(MOST, max(1, round(sqrt(wanted))))
