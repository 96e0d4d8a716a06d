"""A rank that is a process: gloo carries its messages between CPUs, NCCL between GPUs, through one and the same code.

Every verb is begun and then waited for. `exchange` posts receives and sends together, so that no order of the two can
block; an empty message is not sent at all, which both of its ends know, nor an empty collective, which all ranks know.
"""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from lt_core.base.errors import Aborted
from lt_core.base.traffic import Traffic
from lt_core.base.work import Work
from lt_core.comm import calls, checks, groups, laws
from lt_core.comm.begun import Begun, OnGpu, begin, open_end, told
from lt_core.comm.groups import Carrier
from lt_core.comm.outside import Outside
from lt_core.comm.verbs import Verbs

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Work as TorchWork

    from lt_core.comm.comm import Comm, Ends


class Processes(Verbs):
    """A communicator whose ranks are processes; `comm.Comm` says what its verbs do."""

    def __init__(self, carrier: Carrier, rank: int, size: int, device: torch.device, timeout_s: float) -> None:
        self.rank, self.size, self.device, self.timeout_s = rank, size, device, timeout_s
        self.backend = carrier.backend
        self.traffic = Traffic()
        self._counting = threading.Lock()  # a rank may have several threads
        self._carrier, self._torch = carrier, carrier.torch
        self._calls = carrier.meeting.board(carrier.name, size)  # how many collectives each rank has begun
        self._ended = ""
        self._subsets: dict[tuple[int, ...], Processes] = {}
        self._asked: Counter[tuple[int, ...]] = Counter()  # how often for each

    @property
    def ended(self) -> str:
        """Why it was aborted, here or by a peer, in which case it ends here too; empty while it lives."""
        if not self._ended and (why := self._carrier.ended()):
            self.abort(why)  # else a verb begun before the peer's sockets are shut could still succeed
        return self._ended

    def call(self, verb: str, *args: Any) -> None:
        """The verb of that name, until it is over."""
        self._post(verb, args).wait()
        if verb == "barrier" and self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()

    def start(self, verb: str, *args: Any) -> Work:
        """The verb of that name, begun."""
        calls.startable(verb)
        begun = self._post(verb, args)
        if verb not in ("exchange", "reduce_scatter"):  # of these gloo does not tell when they end
            begun.note_end()
        return begun

    def subset(self, ranks: Sequence[int]) -> Comm:
        """A communicator of some ranks, in the order given; the same one again unless it has ended meanwhile."""
        chosen = checks.subset(self, ranks)
        self._check_open()
        if self.rank not in chosen:
            return Outside(self, chosen)
        name = f"{self._carrier.name}.{zlib.crc32(repr(chosen).encode()):x}"
        self._asked[chosen] += 1
        known, call = self._subsets.get(chosen), self._asked[chosen]
        word = "the same" if known and not known.ended else "a new one"
        # The first to come says which, for all: one may see it end when another has already been given it again.
        if known and self._carrier.meeting.settle(f"asked.{name}.{call}", word) == "the same":
            return known
        return self._subset(chosen, f"{name}.{call}")

    def abort(self, reason: str) -> None:
        """End this communicator and its subsets: each verb raises `Aborted(reason)`, here and on its peers."""
        if not self._ended:
            self._ended = reason or "aborted"
            self._carrier.end(self._ended)
        for subset in self._subsets.values():
            subset.abort(reason)

    def broken(self, verb: str, error: RuntimeError, late: str = "") -> Exception:
        """What to raise for an error of the back end; the communicator is ended, so that nobody waits for us.

        `late` says what is missing, where the deadline has passed.
        """
        self.abort(str(raised := told(self, verb, error, late)))
        return raised

    def _post(self, verb: str, args: Sequence[Any]) -> Begun | OnGpu:
        return cast("Begun | OnGpu", getattr(self, f"_{verb}")(*args))

    def _check_open(self) -> None:
        if self._ended:
            raise Aborted(self._ended)

    def _subset(self, chosen: tuple[int, ...], name: str) -> Processes:
        rank, size = chosen.index(self.rank), len(chosen)
        carrier = groups.some(self._carrier, name, rank, size, self.device, self.timeout_s)
        made = self._subsets[chosen] = Processes(carrier, rank, size, self.device, self.timeout_s)
        return made

    def _exchange(self, sends: Ends, receives: Ends) -> Begun | OnGpu:
        checks.exchange(self, sends, receives)
        self._check_open()
        full_sends = [(x, peer) for x, peer in sends if x.numel()]
        full_receives = [(x, peer) for x, peer in receives if x.numel()]
        with self._counting:
            for x, peer in full_sends:
                self.traffic.counted.add(peer, x.nbytes)
        try:
            works = self._carrier.exchange(full_sends, full_receives)
        except RuntimeError as error:
            raise self.broken("exchange", error) from None
        held = [x for x, _ in (*full_receives, *full_sends)]
        return begin(self, "exchange", works, held, lambda index: open_end(index, full_sends, full_receives))

    def _collective(self, verb: str, post: Callable[[], TorchWork], *held: Tensor) -> Begun | OnGpu:
        if self._calls:
            self._calls[self.rank] += 1
        works = [post()] if any(x.numel() for x in held) else []
        return begin(self, verb, works, held, lambda _: self._missing())

    def _missing(self) -> str:
        if not self._calls:
            return "not every rank has come"
        late = [rank for rank, count in enumerate(self._calls) if count < self._calls[self.rank]]
        return f"of {self.size} ranks {late} have not come" if late else "all ranks are there"

    def _barrier(self) -> Begun | OnGpu:
        self._check_open()
        token = torch.zeros(1, device=self.device)  # NCCL has no barrier of its own
        return self._collective("barrier", lambda: self._torch.allreduce([token]), token)

    def _all_reduce(self, x: Tensor, mean: bool = False) -> Begun | OnGpu:
        checks.all_reduce(self, x, mean)
        self._count("all_reduce", x.nbytes)
        begun = self._collective("all_reduce", lambda: self._carrier.all_reduce(x), x)
        begun.total = x if mean else None
        return begun

    def _reduce_scatter(self, out: Tensor, x: Tensor) -> Begun | OnGpu:
        checks.reduce_scatter(self, out, x)
        self._count("reduce_scatter", x.nbytes)
        return self._collective("reduce_scatter", lambda: self._torch._reduce_scatter_base(out, x), out, x)

    def _all_gather(self, out: Tensor, x: Tensor) -> Begun | OnGpu:
        checks.all_gather(self, out, x)
        self._count("all_gather", out.nbytes)
        return self._collective("all_gather", lambda: self._torch._allgather_base(out, x), out, x)

    def _broadcast(self, x: Tensor, root: int) -> Begun | OnGpu:
        checks.broadcast(self, x, root)
        self._count("broadcast", x.nbytes, root)
        return self._collective("broadcast", lambda: self._torch.broadcast(x, root), x)

    def _all_to_all(
        self, out: Tensor, x: Tensor, out_counts: Sequence[int] | None = None, counts: Sequence[int] | None = None
    ) -> Begun | OnGpu:
        come, go = checks.all_to_all(self, out, x, out_counts, counts)
        self._check_open()
        row_nbytes = x.nbytes // max(1, sum(go))
        with self._counting:
            laws.count_all_to_all(self.traffic, self.rank, [row_nbytes * rows for rows in go])
        row = x.new_empty(x.shape[1:], device="meta")  # a rank without rows takes part: another may have some
        return self._collective("all_to_all", lambda: self._torch.alltoall_base(out, x, come, go), out, x, row)

    def _count(self, verb: str, nbytes: int, root: int = 0) -> None:
        self._check_open()
        with self._counting:
            laws.count(self.traffic, verb, nbytes, self.size, self.rank, root)
