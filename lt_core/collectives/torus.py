"""2D-torus all-reduce: rings along the rows, then down the columns over a part each, then along the rows again.

    0 -> 1 -> 2 -> 3 -> (0)     X = 4 columns, Y = 2 rows. [1] Each row sums by half a ring: then column x has its
    |    |    |    |            row's sum of chunk x + 1. [2] Each column sums that chunk by a ring of its own, on
    4 -> 5 -> 6 -> 7 -> (4)     1/X of the tensor. [3] Each row tells, by the ring's other half.

Law: p = X Y ranks, n bytes; alpha, beta, gamma as for the ring.
    rounds    2 (X - 1) + 2 (Y - 1): 8 for 4 x 2, where a ring of 8 has 14
    bytes     2 n (p - 1) / p sent by each rank, as few as by a ring
    seconds   rounds alpha + (p - 1) / p (2 beta n + gamma n)

Ranks that are prime have no second direction: then it is a ring.

Paper: Mikami et al. (Sony) 2018, arXiv 1811.05233.
"""

from __future__ import annotations

from math import isqrt

from lt_core.base.action import Op
from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.base.units import bounds
from lt_core.collectives import ring
from lt_core.collectives.compose import beside, placed
from lt_core.collectives.rounds import ADD, COPY, Round, of_rounds


def schedule(size: int, columns: int | None = None) -> Schedule:
    """The torus of `size` ranks over `size` chunks; rank r stands in row r // columns.

    columns: X; the grid nearest to a square where it is not given. Errors: columns that do not divide the ranks.
    """
    wide = _columns(size, columns)
    rows = [range(start, start + wide) for start in range(0, size, wide)]
    return of_rounds("torus", size, [*_along(rows, ADD, 0), *_down(rows), *_along(rows, COPY, 1)])  # [1], [2], [3]


def squarest(size: int) -> int:
    """The columns of the grid that is nearest to a square, not fewer than its rows: 4 for 8 ranks, 7 for 7."""
    return next((size // rows for rows in range(isqrt(max(0, size)), 0, -1) if size % rows == 0), 1)


def _columns(size: int, columns: int | None) -> int:
    wide = squarest(size) if columns is None else columns
    if wide < 1 or size % wide:
        raise UserError(f"{size} ranks are no torus", f"{wide} columns", f"columns that divide {size}")
    return wide


def _along(rows: list[range], take: Op, first: int) -> list[Round]:
    """Half a ring in every row, a column's chunk being as many units as there are rows."""
    return beside(*(placed(ring.once_round(len(row), take, first), row, width=len(rows)) for row in rows))


def _down(rows: list[range]) -> list[Round]:
    """A ring in every column, over the chunk that its rows' rings have left there."""
    wide, high = (len(rows[0]), len(rows)) if rows else (0, 0)
    return beside(*(placed(ring.rounds(high), [row[x] for row in rows], (x + 1) % wide * high) for x in range(wide)))


def law_rounds(size: int, columns: int | None = None) -> int:
    """How many rounds: along, down twice, along."""
    wide = _columns(size, columns)
    return 2 * (wide - 1) + 2 * (size // wide - 1)


def law_messages(size: int, elements: int, rank: int, columns: int | None = None) -> int:
    """How many messages `rank` sends; chunks without elements are not sent."""
    return sum(1 for part in _parts(size, elements, rank, _columns(size, columns)) if part)


def law_bytes(size: int, elements: int, itemsize: int, rank: int, columns: int | None = None) -> int:
    """How many bytes `rank` sends, exactly so also where chunks are uneven."""
    return sum(_parts(size, elements, rank, _columns(size, columns))) * itemsize


def _parts(size: int, elements: int, rank: int, wide: int) -> list[int]:
    """Elements of each message that `rank` sends: of each ring all chunks but the one whose journey ends there."""
    high, x, y = size // wide, rank % wide, rank // wide
    along = [c * high for end in (x + 1, x + 2) for c in range(wide) if c != end % wide]
    down = [(x + 1) % wide * high + u for end in (y + 1, y + 2) for u in range(high) if u != end % high]
    cuts = [bounds(elements, unit, size, high) for unit in along] + [bounds(elements, unit, size) for unit in down]
    return [b - a for a, b in cuts]


def law_seconds(
    size: int,
    nbytes: int,
    wire: Wire,
    add_s_per_byte: float = 0.0,
    columns: int | None = None,
    along: Wire | None = None,
) -> float:
    """How long the all-reduce of `nbytes` takes over links that are all `wire`, exactly so where chunks are even.

    along: another wire along the rows, such as the one inside of a machine.
    """
    wide = _columns(size, columns)
    rows_s = ring.law_seconds(wide, nbytes, along or wire, add_s_per_byte)
    return rows_s + ring.law_seconds(size // wide, nbytes / wide, wire, add_s_per_byte)
