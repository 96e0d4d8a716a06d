"""The verbs of a contract: say what is called, see that every rank says the same, and only then call it.

A message is over only when its receive was posted, as on NCCL: gloo would buffer a small one. What ranks do not agree
on ends the communicator, and every rank raises it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lt_core.base.errors import Deadline, Mismatch, Misuse
from lt_core.base.work import Work
from lt_core.comm import buffers, calls, checks
from lt_core.comm.comm import Comm, Ends
from lt_core.comm.contract.agree import Calls, Messages
from lt_core.comm.contract.buffers import Owned, Roles, roles
from lt_core.comm.contract.share import share
from lt_core.comm.contract.started import Record, Unwaited
from lt_core.comm.contract.waits import Missing, Waits
from lt_core.comm.verbs import Verbs


def contract(comm: Comm, timeout_s: float | None = None) -> Comm:
    """The same group under NCCL's contract; every rank calls it. Ranks of one host.

    Its verbs raise `Mismatch` where ranks call different things, `Misuse` where one does what NCCL does not allow, and
    `Deadline` where a rank does not come within `timeout_s` (as the communicator's unless given).
    """
    return Contract(comm, timeout_s or comm.timeout_s) if comm.rank >= 0 else comm


def under_contract(comm: Comm, fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(comm, *args)` with the group under contract, and the certainty that nothing started was left unwaited."""
    held = contract(comm)
    result = fn(held, *args)
    if isinstance(held, Contract):
        held.close()
    return result


class Contract(Verbs):
    """A communicator around `inner`. `close()` says whether everything started was waited for."""

    def __init__(self, inner: Comm, timeout_s: float) -> None:
        self._inner = inner
        self.rank, self.size, self.device, self.backend = inner.rank, inner.size, inner.device, inner.backend
        self.traffic, self.timeout_s = inner.traffic, timeout_s
        pages = share(inner)
        self._waits = Waits(pages, timeout_s, lambda: inner.ended, inner.abort)
        self._calls, self._messages, self._unwaited = Calls(pages), Messages(pages), Unwaited(self.rank)
        self._posting = threading.Lock()
        self._subsets: dict[tuple[int, ...], tuple[Comm, Comm]] = {}

    @property
    def ended(self) -> str:
        """Why it was aborted; empty while it lives."""
        return self._inner.ended

    def call(self, verb: str, *args: Any) -> None:
        """The verb of that name, once every rank says the same."""
        self._enter(verb, args)
        with self._faults():
            if verb == "exchange":
                missing, work = self._begin_messages(*args)
                self._waits.until(missing, _exchange_words(*args))
                work.wait()
            else:
                self._agree(calls.text(verb, *args))
                getattr(self._inner, verb)(*args)

    def subset(self, ranks: Sequence[int]) -> Comm:
        """A communicator of some ranks, under the contract too; every rank calls it, in one order."""
        chosen = checks.subset(self, ranks)
        self._waits.enter()
        with self._faults():
            self._agree(calls.text("subset", chosen))
            inner = self._inner.subset(chosen)
        known = self._subsets.get(chosen)
        if known is None or known[0] is not inner:  # a communicator may hand out the same group again
            known = self._subsets[chosen] = inner, contract(inner, self.timeout_s)
        return known[1]

    def start(self, verb: str, *args: Any) -> Work:
        """The verb of that name, begun; its outputs hold poison and its inputs must not change until `wait()`."""
        calls.startable(verb)
        owned = Owned(verb, args, self._enter(verb, args))
        with self._faults():
            if verb == "exchange":
                words = _exchange_words(*args)
                missing, work = self._begin_messages(*owned.args)
            else:
                words = calls.text(verb, *args)
                missing = partial(self._calls.missing, self._post(words))
                missing()  # who comes later sees a difference before anything moves
                work = self._inner.start(verb, *owned.args)
        return self._unwaited.add(Record(words, owned, missing, work), self._finish)

    def allocate(self, elements: int, dtype: torch.dtype) -> Tensor:
        """As `buffers.allocate`: where the communicator beneath works in place; every rank asks for the same."""
        self._waits.enter()
        with self._faults():
            self._agree(calls.text("allocate", torch.empty(elements, dtype=dtype, device="meta")))
            return buffers.allocate(self._inner, elements, dtype)

    def free(self, x: Tensor) -> None:
        """Give it back."""
        buffers.free(self._inner, x)

    def abort(self, reason: str) -> None:
        """End this communicator on every rank."""
        self._waits.tell_abort(reason)

    def close(self) -> None:
        """End of use, here and in subsets. Errors: `Misuse` naming what was started and never waited for."""
        if not self.ended:
            self._unwaited.close()
        for _, group in self._subsets.values():
            if isinstance(group, Contract):
                group.close()

    def _enter(self, verb: str, args: Sequence[Any]) -> Roles:
        if args:
            getattr(checks, verb)(self, *args)
        tensors = roles(verb, args, self.rank)
        self._unwaited.check(verb, tensors)
        self._waits.enter()
        return tensors

    def _agree(self, text: str) -> None:
        self._waits.until(partial(self._calls.missing, self._post(text)), text)

    def _post(self, text: str) -> int:
        self._waits.until(self._calls.no_room, text)
        return self._calls.post(text)

    def _begin_messages(self, sends: Ends, receives: Ends) -> tuple[Callable[[], Missing], Work]:
        with self._posting:  # two threads of a rank may exchange at once
            ends = self._messages.post(sends, receives)
            return partial(self._messages.missing, ends), self._inner.start("exchange", sends, receives)

    def _finish(self, record: Record) -> None:
        self._unwaited.remove(record)
        with self._faults():
            self._waits.until(record.missing, record.words)
            record.work.wait()
        if changed := record.owned.changed():
            raise Misuse(f"rank {self.rank}, {record.words}: {changed} before wait()", attempt="touch it after wait()")
        record.owned.deliver()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Every rank raises what one rank found; what this one finds it tells."""
        try:
            yield
        except Exception as error:
            self._waits.check_fault(error)
            if isinstance(error, Mismatch | Misuse | Deadline):
                self._waits.fail(error)
            raise


def _exchange_words(sends: Ends, receives: Ends) -> str:
    return calls.exchange([peer for _, peer in sends], [peer for _, peer in receives])
