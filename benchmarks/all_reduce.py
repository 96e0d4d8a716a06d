"""All-reduces over real processes against gloo's, as torch.distributed gives it to everybody, and against a plain copy.

A call lasts as long as its slowest rank took from the same barrier on, and until all have ended nobody does anything
else: a rank that looks at its result holds the core of one that still waits. All take turns, call after call, and so
does who goes first. Ours is made ready once for its buffer, as a training loop does with its buckets. The peer is a
group of its own in the same processes, its thread as gloo starts it. `gloo, standing back` is one whose thread was told
to wait for a core, as lt_core tells its own. `raw copy`: every rank copies as many bytes from one tensor of its own to
another, all at once.
"""

from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.rows import Rounds, Row, compare_rounds, printed, slowest
from lt_core.collectives import Prepared, ring
from lt_core.comm import Comm, host, launch
from lt_core.comm.buffers import allocate, free
from lt_core.comm.groups import GLOO_THREADS

BENCH = "all_reduce"
MIB = 2**20
RING, RING_RANKS = (MIB, 4 * MIB, 16 * MIB, 64 * MIB), 2
SHARED, SHARED_RANKS = (2**10, 2**14, 2**16, 2**18, *RING), (2, 4, 8)
ROUNDS = 101  # of the ring; over shared memory the more, the less one takes
GLOO, BACK, RAW = "gloo", "gloo, standing back", "raw copy"


class Contender(NamedTuple):
    """What is timed, and the tensor it changes."""

    run: Callable[[], object]
    x: Tensor
    sums: bool = True


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    for nbytes in RING:
        found = slowest(launch(ring_and_gloo, RING_RANKS, nbytes, ROUNDS + 1, backend="gloo"))
        case = f"ring over point-to-point, {RING_RANKS} ranks, {text(nbytes)}"
        yield compare_rounds(BENCH, case, found, "ring", GLOO)
    for size in SHARED_RANKS:
        by_rank = launch(shared_gloo_and_copy, size, SHARED, backend="shared_memory")
        for index, nbytes in enumerate(SHARED):
            found = slowest([of_rank[index] for of_rank in by_rank])
            for way in ("in place", "copied"):
                for peer in (GLOO, BACK, RAW) if nbytes >= MIB else (GLOO, BACK):
                    yield compare_rounds(BENCH, f"all-reduce {way}, {size} ranks, {text(nbytes)}", found, way, peer)


def text(nbytes: int) -> str:
    """A power of two in its own unit."""
    return f"{nbytes // MIB} MiB" if nbytes >= MIB else f"{nbytes // 2**10} KiB"


def ring_and_gloo(comm: Comm, nbytes: int, rounds: int) -> Rounds:
    """Seconds that each round took on this rank: by our ring, by gloo."""
    x = torch.ones(nbytes // 4)
    ring_sum, group = Prepared(comm, x, ring.schedule(comm.size)), dist.new_group(backend="gloo")
    gloo = Contender(lambda: dist.all_reduce(x, group=group), x)
    return in_turns(comm, {"ring": Contender(ring_sum, x), GLOO: gloo}, rounds)


def shared_gloo_and_copy(comm: Comm, sizes: tuple[int, ...]) -> list[Rounds]:
    """For each size the seconds that each round took on this rank, over shared memory and as its peers do."""
    standing_back = dist.new_group(backend="gloo")
    host.stand_back(GLOO_THREADS)
    group, found = dist.new_group(backend="gloo"), []
    for nbytes in sizes:
        slot, x, y = allocate(comm, nbytes // 4), torch.ones(nbytes // 4), torch.ones(nbytes // 4)
        contenders = {
            "in place": Contender(lambda slot=slot: comm.all_reduce(slot), slot),  # type: ignore[misc]
            "copied": Contender(lambda x=x: comm.all_reduce(x), x),  # type: ignore[misc]
            GLOO: Contender(lambda x=x: dist.all_reduce(x, group=group), x),  # type: ignore[misc]
            BACK: Contender(lambda x=x: dist.all_reduce(x, group=standing_back), x),  # type: ignore[misc]
            RAW: Contender(lambda x=x, y=y: x.copy_(y), x, sums=False),  # type: ignore[misc]
        }
        found.append(in_turns(comm, contenders, 1 + (51 if nbytes < MIB else 21 if nbytes < 64 * MIB else 11)))
        free(comm, slot)
    return found


def in_turns(comm: Comm, contenders: Mapping[str, Contender], rounds: int) -> Rounds:
    """Seconds by contender and round."""
    found: Rounds = {name: [] for name in contenders}
    for number in range(rounds):
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            found[name].append(seconds(comm, contenders[name]))
    return found


def seconds(comm: Comm, contender: Contender) -> float:
    """What one call takes on this rank, between two barriers; its result is looked at afterwards."""
    contender.x.fill_(1.0)
    comm.barrier()
    start_s = perf_counter()
    contender.run()
    passed_s = perf_counter() - start_s
    comm.barrier()
    assert bool((contender.x == (comm.size if contender.sums else 1)).all())
    return passed_s


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
