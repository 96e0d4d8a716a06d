"""All-reduce over real processes against gloo's, as torch.distributed gives it to everybody; in place, in one launch.

A call lasts as long as its slowest rank took from the same barrier on. The two take turns, call after call, and so does
who goes first. Ours is made ready once for its buffer, as a training loop does with its buckets. The peer is a group of
its own in the same processes, its thread as gloo starts it: that ours stands back for who computes helps gloo as well.
"""

from collections.abc import Callable, Iterator
from time import perf_counter

import torch
import torch.distributed as dist

from benchmarks.rows import Row, compare, printed
from lt_core.collectives import Prepared, ring
from lt_core.comm import Comm, launch

BENCH = "all_reduce"
RANKS = 2
MIB = (1, 4, 16, 64)
ROUNDS = 101


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    for mib in MIB:
        ours_s, gloo_s = slowest(launch(timed, RANKS, mib * 2**20, ROUNDS + 1, backend="gloo"))
        case = f"ring over point-to-point, {RANKS} ranks, {mib} MiB"
        yield compare(BENCH, case, iter(ours_s).__next__, iter(gloo_s).__next__, "gloo", ROUNDS)


def timed(comm: Comm, nbytes: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds that each round took on this rank: by the ring, by gloo."""
    x = torch.ones(nbytes // 4)
    ring_sum, group = Prepared(comm, x, ring.schedule(comm.size)), dist.new_group(backend="gloo")

    def seconds(all_reduce: Callable[[], None]) -> float:
        x.fill_(1.0)
        comm.barrier()
        start_s = perf_counter()
        all_reduce()
        passed_s = perf_counter() - start_s
        assert torch.equal(x, torch.full_like(x, comm.size))
        return passed_s

    def gloo() -> None:
        dist.all_reduce(x, group=group)

    ours_s, gloo_s = [], []
    for number in range(rounds):
        turns = [(ring_sum, ours_s), (gloo, gloo_s)]
        for all_reduce, passed_s in turns[:: -1 if number % 2 else 1]:
            passed_s.append(seconds(all_reduce))
    return ours_s, gloo_s


def slowest(by_rank: list[tuple[list[float], list[float]]]) -> list[list[float]]:
    """Of each algorithm, for each round, the seconds of the rank that took longest."""
    return [[max(ranks) for ranks in zip(*series, strict=True)] for series in zip(*by_rank, strict=True)]


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
