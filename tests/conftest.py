"""The fixture `ranks`: every technique is tested on threads, on real processes, and on GPUs where there are some.

`displayed`: what a notebook is shown.
"""

import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import settings

from lt_core.base.errors import UserError
from lt_core.comm import threads
from lt_core.comm.contract import under_contract
from lt_core.comm.control import Served
from tests.sharing import sharing
from tests.warm import RANKS, WAIT_S, Warm

signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background ignores it
settings.register_profile("here", deadline=None)  # how long an example takes is a benchmark's business
settings.load_profile("here")
torch.set_num_threads(1)  # tests are small, and two lanes of them share the cores

PROCESSES = ["gloo", *(["nccl"] if torch.cuda.device_count() >= RANKS else [])]


class Ranks(NamedTuple):
    """`size` ranks to run functions on; their communicators hold everybody to NCCL's contract."""

    size: int
    backend: str
    call: Callable[[Callable[..., Any], tuple[Any, ...]], list[Any]]

    def run(self, fn: Callable[..., Any], *args: Any) -> list[Any]:
        """What `fn(comm, *args)` returns, by rank. An argument `served(object)` stays here, and is called from there.

        Raises the `RankError` of the rank that failed first.
        """
        return self.call(fn, args)


class Groups:
    """The warm groups of this session, one a back end, each started when it is first asked for."""

    def __init__(self) -> None:
        self._warm: dict[str, Warm] = {}

    def get(self, backend: str) -> Warm:
        """The group, living."""
        if backend not in self._warm or not self._warm[backend].lives:
            self._warm[backend] = Warm(backend)
        return self._warm[backend]

    def mend(self) -> None:
        """Make anew what a test broke: it is this test that waits for it."""
        for backend, warm in self._warm.items():
            if not warm.lives:
                self._warm[backend] = Warm(backend)

    def close(self) -> None:
        """Send all ranks home."""
        for warm in self._warm.values():
            warm.close()


@pytest.fixture(scope="session")
def groups() -> Iterator[Groups]:
    """The warm groups."""
    held = Groups()
    yield held
    held.close()


@pytest.fixture(params=["threads", *(pytest.param(name, marks=pytest.mark.processes) for name in PROCESSES)])
def ranks(request: pytest.FixtureRequest, groups: Groups) -> Iterator[Callable[[int], Ranks]]:
    """`ranks(4).run(fn, *args)` runs `fn(comm, *args)` on 4 ranks; `.backend` says on what."""
    backend = request.param

    def run(size: int, fn: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        if backend == "threads":
            given = [arg.target if isinstance(arg, Served) else arg for arg in args]
            return threads.run(under_contract, size, (fn, *given), WAIT_S)
        if backend == "shared_memory":  # chosen tests ask for it
            return groups.get("gloo").run(size, sharing, (fn, *args), checked=False)
        return groups.get(backend).run(size, fn, args)

    def of(size: int) -> Ranks:
        if not 1 <= size <= RANKS:
            raise UserError("the warm group cannot give so many ranks", size, f"1 to {RANKS}")
        return Ranks(size, backend, lambda fn, args: run(size, fn, args))

    yield of
    groups.mend()


@pytest.fixture
def processes(groups: Groups) -> Iterator[Callable[[int], Ranks]]:
    """As `ranks`, on gloo alone and without the contract: what the communicator of processes itself does."""
    yield lambda size: Ranks(size, "gloo", lambda fn, args: groups.get("gloo").run(size, fn, args, checked=False))
    groups.mend()


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What IPython's own display sends where a kernel lives: a list of {data, metadata, ...}."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    kernel = SimpleNamespace(kernel=object(), display_pub=CapturingDisplayPublisher())
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: kernel)
    monkeypatch.setattr(InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr(InteractiveShell, "instance", lambda: kernel)
    return kernel.display_pub.outputs
