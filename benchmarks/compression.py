"""A training step with PowerSGD against DDP with torch's own hook, on real processes over gloo, in one launch.

The same MLP, batch, rank, error feedback, warm start, and one bucket; both take turns, and so does who goes first. A
step is forward, backward, communication and SGD, and lasts as long as its slowest rank took from one barrier on. (With
more than one bucket the hook's messages meet in another order on each rank over gloo, and its processes abort.)
Beside it each compressor alone, on the gradient of one layer (4.2 M elements), against the plain mean on the same wire.
"""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from benchmarks.rows import Row, compare, printed
from lt_core.collectives import Mean
from lt_core.collectives.reducer import Reducer
from lt_core.comm import Comm, launch
from lt_core.compression import (
    QSGD,
    Coarse,
    Elias,
    ErrorFeedback,
    GradZip,
    Half,
    OneBit,
    Packed,
    PowerSGD,
    TernGrad,
    TopK,
)
from lt_core.data_parallel.replicate import bucketed
from lt_core.models.chain import WIDE, chain

BENCH = "compression"
RANKS = (2, 4)
LAYER = 6  # of 2048 x 2048
BUCKET_MIB = 128  # holds all gradients
SAMPLES, RANK, ROUNDS, ROUNDS_ALONE = 16, 2, 15, 7
COMPRESSORS: dict[str, Callable[[], Reducer]] = {
    "half": Half,
    "1-bit": lambda: ErrorFeedback(OneBit()),
    "TernGrad": TernGrad,
    "QSGD 1 level, Elias": lambda: QSGD(1, code=Elias()),
    "QSGD 7 levels, 4 bits": lambda: QSGD(7, code=Packed()),
    "top-k 1 %": lambda: ErrorFeedback(TopK(0.01)),
    "coarse 10 %": lambda: ErrorFeedback(Coarse(0.1)),
    "PowerSGD rank 2": lambda: ErrorFeedback(PowerSGD(2)),
    "GradZip rank 2": lambda: ErrorFeedback(GradZip(2)),
}


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    for ranks in RANKS:
        ours_s, hook_s = slowest(launch(steps, ranks, ROUNDS + 1, backend="gloo"))
        case = f"PowerSGD rank {RANK}, {ranks} ranks"
        yield compare(BENCH, case, iter(ours_s).__next__, iter(hook_s).__next__, "DDP powerSGD_hook", ROUNDS)
    for name, rounds in alone(launch(compressors, 2, ROUNDS_ALONE + 1, backend="gloo", timeout_s=120)).items():
        for unit, ours, mean in (("s", rounds.ours_s, rounds.mean_s), ("B", rounds.ours_bytes, rounds.mean_bytes)):
            case = f"{name}, one layer, 2 ranks, {'bytes' if unit == 'B' else 'seconds'}"
            yield compare(BENCH, case, iter(ours).__next__, iter(mean).__next__, "plain", ROUNDS_ALONE, unit)


class Alone(NamedTuple):
    """A compressor's rounds on one rank, and those of the plain mean: seconds and bytes sent."""

    ours_s: list[float]
    mean_s: list[float]
    ours_bytes: list[float]
    mean_bytes: list[float]


def batch(rank: int) -> tuple[Tensor, Tensor]:
    """A rank's samples and their classes."""
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(SAMPLES, WIDE[0], generator=generator)
    return x, torch.randint(WIDE[-1], (SAMPLES,), generator=generator)


def steps(comm: Comm, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds that each round took on this rank: by ours, by DDP with torch's hook."""
    x, y = batch(comm.rank)
    turns = [(ours(comm), list[float]()), (hooked(), list[float]())]
    for number in range(rounds + 2):  # the hook starts with its third step
        for (model, sync), passed_s in turns[:: -1 if number % 2 else 1]:
            comm.barrier()
            start_s = perf_counter()
            nn.functional.cross_entropy(model(x), y).backward()
            sync()
            if number >= 2:
                passed_s.append(perf_counter() - start_s)
    return turns[0][1], turns[1][1]


def ours(comm: Comm) -> tuple[nn.Module, Callable[[], None]]:
    """The model, and what follows a backward."""
    model = chain(WIDE)
    replica = bucketed.replicate(model, comm, ErrorFeedback(PowerSGD(RANK)), BUCKET_MIB * 2**20)
    sgd = torch.optim.SGD(model.parameters(), 1e-3)

    def sync() -> None:
        replica.sync()
        sgd.step()
        sgd.zero_grad()

    return model, sync


def hooked() -> tuple[nn.Module, Callable[[], None]]:
    """The same of the peer, whose messages are over when its backward is."""
    group = dist.new_group(backend="gloo")
    model = DistributedDataParallel(
        chain(WIDE), process_group=group, gradient_as_bucket_view=True, bucket_cap_mb=BUCKET_MIB
    )
    state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=RANK, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    sgd = torch.optim.SGD(model.parameters(), 1e-3)

    def sync() -> None:
        sgd.step()
        sgd.zero_grad()

    return model, sync


def compressors(comm: Comm, rounds: int) -> dict[str, Alone]:
    """Of each compressor on this rank: seconds and bytes of rounds, in turns with the plain mean."""
    model, (x, y) = chain(WIDE), batch(comm.rank)
    nn.functional.cross_entropy(model(x), y).backward()
    grads = {name: p.grad for name, p in model[LAYER].named_parameters() if p.grad is not None}
    found = {}
    for name, make in COMPRESSORS.items():
        pair = (make(), [], []), (Mean(), [], [])
        for reducer, *_ in pair:
            reducer.reduce(grads, comm)
        for _ in range(rounds):
            for reducer, passed_s, sent in pair:
                comm.barrier()
                before, start_s = comm.traffic.bytes, perf_counter()
                reducer.reduce(grads, comm)
                passed_s.append(perf_counter() - start_s)
                sent.append(float(comm.traffic.bytes - before))
        found[name] = Alone(pair[0][1], pair[1][1], pair[0][2], pair[1][2])
    return found


def alone(by_rank: Sequence[dict[str, Alone]]) -> dict[str, Alone]:
    """Of each compressor the rounds of the slowest rank; the bytes of the one that sent most."""
    return {name: Alone(*slowest([ranks[name] for ranks in by_rank])) for name in by_rank[0]}


def slowest(by_rank: Sequence[Sequence[list[float]]]) -> list[list[float]]:
    """Of each series, for each round, the number of the rank that had the largest."""
    return [[max(ranks) for ranks in zip(*series, strict=True)] for series in zip(*by_rank, strict=True)]


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
