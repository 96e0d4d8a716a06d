"""What is asked of a group and what it answers, as plain data: upper half for its users, lower half for its wires."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from lt_core.base.errors import Shown
from lt_core.comm.failure import Failure

NOTHING: Mapping[str, object] = MappingProxyType({})


class Cell(NamedTuple):
    """Code for ranks. `ranks`: which run it (all); `given`: objects they get by name; `wanted`: names they give back;
    `passing`: names that are gone after it, however it ends.

    `timeout_s`: the longest that a rank may wait in one collective; the cell as a whole may last as long as it likes.
    `name`: what tracebacks call it; each cell has one of its own, so that an earlier one's functions show their lines.
    `first_line`: the number of the text's first line, where others stand above it that are not code.
    """

    text: str
    name: str = "<cell>"
    ranks: tuple[int, ...] | None = None
    given: Mapping[str, object] = NOTHING
    wanted: tuple[str, ...] = ()
    timeout_s: float = 60.0
    passing: tuple[str, ...] = ()
    first_line: int = 1

    @property
    def numbered(self) -> str:
        """The text under empty lines, so that whoever counts its lines comes to the numbers they are to have."""
        return "\n" * (self.first_line - 1) + self.text


class Line(NamedTuple):
    """A line that these ranks printed, each of them; without ranks it is the group's own word.

    `stream`: "out" or "err". `late`: it came after the end of the cell before. A text that ends with a carriage return
    is a line's state so far: the next line of the same ranks takes its place.
    """

    ranks: tuple[int, ...]
    stream: str
    text: str
    late: bool = False


class Outcome(NamedTuple):
    """How a cell ended well: `repr` of its last expression by rank, where there is one; what was wanted, by rank."""

    values: dict[int, str]
    outs: dict[str, list[object]]
    seconds: float


class Status(NamedTuple):
    """A group: its owner (a notebook), and since when it stands, in seconds since 1970; `size` 0 where its file says
    nothing that this version of LT-Lab reads."""

    owner: str
    size: int
    backend: str
    since_s: float
    kernel: int
    keeper: int
    folder: str
    alive: bool = True
    pids: tuple[int, ...] = ()

    @property
    def ranks(self) -> str:
        """Which ranks, in words: "4 ranks over gloo of ring.ipynb"."""
        if not self.size:
            return f"ranks of another version of LT-Lab, in {self.folder}"
        return f"{self.size} rank{'s' * (self.size > 1)} over {self.backend} of {self.owner}"


class Interrupted(Shown, KeyboardInterrupt):
    """A cell that the user interrupted; the text says which ranks could not be."""


def ranks_text(ranks: tuple[int, ...]) -> str:
    """Ranks in words.

    >>> ranks_text((0, 2, 3, 4))
    'ranks 0, 2-4'
    """
    runs = [[r for _, r in run] for _, run in groupby(enumerate(sorted(ranks)), lambda pair: pair[1] - pair[0])]
    listed = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"rank{'s' * (len(ranks) > 1)} {listed}"


class Job(NamedTuple):
    """A cell on its way to a rank."""

    number: int
    text: str
    code: bytes
    name: str
    given: dict[str, bytes]
    wanted: tuple[str, ...]
    timeout_s: float
    passing: tuple[str, ...]


class Renew(NamedTuple):
    """Make the communicator anew."""

    number: int
    generation: int
    timeout_s: float


class Hello(NamedTuple):
    """A rank's first words: its communicator stands, and an all-reduce came out right."""

    rank: int
    pid: int


class Reply(NamedTuple):
    """A rank's answer to a Job or a Renew. `broken`: it has no communicator any more."""

    rank: int
    number: int
    value: str | None = None
    outs: Mapping[str, bytes] | None = None
    failure: Failure | None = None
    broken: bool = False


class Ask(NamedTuple):
    """A question to a rank's control thread, which answers whatever the rank does: "free" (reason) or "flight"."""

    what: str
    reason: str = ""


class Told(NamedTuple):
    """Its answer."""

    rank: int
    what: str
    answer: object
