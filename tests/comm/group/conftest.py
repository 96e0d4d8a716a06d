"""One warm group of two ranks for this folder's tests, in a folder of groups of its own; and what a cell came to."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lt_core.comm.group import Cell, Group, Line, Outcome

STALE = {"MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "77"}


class Seen(NamedTuple):
    """A cell as its user sees it."""

    lines: list[Line]
    outcome: Outcome | None
    error: BaseException | None
    seconds: float
    progress: list[str]

    def texts(self, stream: str = "out") -> list[tuple[tuple[int, ...], str]]:
        return [(line.ranks, line.text) for line in self.lines if line.stream == stream]

    @property
    def values(self) -> dict[int, str]:
        assert self.outcome, self.error
        return self.outcome.values


Run = Callable[..., Seen]


def run(group: Group, text: str, **options: Any) -> Seen:
    """Run a cell and keep whatever comes of it; `lines`: the list to put them in."""
    lines: list[Line] = options.pop("lines", [])
    progress: list[str] = []
    outcome, error, begun_s = None, None, time.monotonic()
    try:
        outcome = group.run(Cell(text, options.pop("name", "<cell 1>"), **options), lines.append, progress.append)
    except (Exception, KeyboardInterrupt) as raised:
        error = raised
    return Seen(lines, outcome, error, time.monotonic() - begun_s, progress)


@pytest.fixture(scope="session", autouse=True)
def own_root() -> Iterator[Path]:
    """A folder of groups that no other test run shares; and an environment in which another run has left its port."""
    place = Path(tempfile.mkdtemp(prefix="lt-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(place))
        for name, value in STALE.items():
            patch.setenv(name, value)
        yield place / "lt_core"
    shutil.rmtree(place)


@pytest.fixture(scope="session")
def group(own_root: Path) -> Iterator[Group]:
    """The warm group. It starts anew by itself where a test has ended it."""
    held = Group(2, backend="gloo", owner="tests.ipynb")
    yield held
    held.stop()


@pytest.fixture
def cell(group: Group) -> Run:
    """Run a cell in the warm group."""
    return lambda text, **options: run(group, text, **options)
