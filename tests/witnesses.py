"""The three witnesses of a law: formula, simulation, and the counts of a real run; and who has been held to it."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from torch import Tensor

from lt_core.base.cluster import Cluster, Device, Wire
from lt_core.base.schedule import Schedule
from lt_core.base.units import bounds
from lt_core.collectives.checks import units
from lt_core.engine.costs import Unit, of_cluster
from lt_core.engine.simulate import simulate

ROOT = Path(__file__).parent.parent
BETWEEN_RANKS = {"law_bytes", "law_messages", "law_seconds"}
RAN: set[tuple[str, str]] = set()  # (module, backend) of every law that a real run of this test run has met


class Laws(Protocol):
    """The faces of a collective: a module such as `ring`, or an object."""

    def schedule(self, size: int) -> Schedule: ...
    def law_rounds(self, size: int) -> int: ...
    def law_messages(self, size: int, elements: int, rank: int) -> int: ...
    def law_bytes(self, size: int, elements: int, itemsize: int, rank: int) -> int: ...
    def law_seconds(self, size: int, nbytes: int, wire: Wire, add_s_per_byte: float) -> float: ...


class Case(NamedTuple):
    """A collective that is held to its laws. `right`: from all ranks' flat tensors to what `rank` must have after.

    early: of a law that is a bound, how many rounds before it the simulation may end.
    """

    name: str
    module: str
    laws: Laws
    right: Callable[[list[Tensor], int], Tensor]
    early: int = 0

    def __str__(self) -> str:
        return self.name


class Sent(NamedTuple):
    """What one rank sent."""

    nbytes: int
    messages: int


def by_law(laws: Laws, size: int, elements: int, itemsize: int) -> list[Sent]:
    """What the formula says each rank sends."""
    each = range(size)
    return [Sent(laws.law_bytes(size, elements, itemsize, r), laws.law_messages(size, elements, r)) for r in each]


def by_simulation(schedule: Schedule, elements: int, itemsize: int, cut: int = 0) -> list[Sent]:
    """What each rank sends in a simulation over the real, uneven chunks: `cut` of them, or as many as it names."""
    parts = cut or units(schedule)
    cuts = [bounds(elements, unit, parts) for unit in range(parts)]
    here = Cluster("test", Device("any", 0), schedule.size, Wire("any", 1.0, 1.0))
    trace = simulate(schedule, of_cluster(here, chunk_bytes=[(high - low) * itemsize for low, high in cuts]))
    sizes = [[s.nbytes for s in trace.spans if (s.rank, s.stream) == (r, "out")] for r in range(schedule.size)]
    return [Sent(sum(sent), sum(1 for nbytes in sent if nbytes)) for sent in sizes]


def seconds_by_simulation(schedule: Schedule, nbytes: int, wire: Wire, add_s_per_byte: float) -> float:
    """How long it takes for `nbytes` in chunks that are all alike."""
    chunk_bytes = nbytes / units(schedule)
    beta, gamma = chunk_bytes / wire.bytes_per_s, chunk_bytes * add_s_per_byte
    return simulate(schedule, Unit(alpha=wire.latency_s, beta=beta, gamma=gamma)).makespan_s()


def modules_with_laws(folder: str = "") -> list[str]:
    """The modules in a folder of lt_core in which a law of bytes, messages or seconds between ranks is written."""
    found = []
    for path in sorted((ROOT / "lt_core" / folder).rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if BETWEEN_RANKS & {node.name for node in nodes if isinstance(node, ast.FunctionDef) and not _face(node)}:
            found.append(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


def _face(node: ast.FunctionDef) -> bool:
    """Whether it says what others have, as a method of a protocol does: its body is `...`."""
    last = node.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...
