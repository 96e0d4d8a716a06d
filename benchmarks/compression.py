"""A training step with PowerSGD against DDP with torch's own hook, on real processes over gloo, in one launch.

The same MLP, batch, rank, error feedback, warm start, and one bucket; both take turns, and so does who goes first. A
step is forward, backward, communication and SGD, and lasts as long as its slowest rank took from one barrier on. (With
more than one bucket the hook's messages meet in another order on each rank over gloo, and its processes abort.)
Beside it each compressor alone, on the gradient of one layer (4.2 M elements), against the plain mean on the same wire.
"""

from collections.abc import Callable, Iterator, Mapping
from time import perf_counter

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from benchmarks.rows import Rounds, Row, compare_rounds, printed, slowest
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
    Threshold,
    TopK,
    deep_gradient_compression,
)
from lt_core.data_parallel.replicate import bucketed
from lt_core.models.chain import WIDE, chain

BENCH = "compression"
RANKS = (2, 4)
LAYER = 6  # of 2048 x 2048
BUCKET_MIB = 128  # holds all gradients
HOOK = "DDP powerSGD_hook"
SAMPLES, RANK, ROUNDS, ROUNDS_ALONE = 16, 2, 15, 7
COMPRESSORS: dict[str, Callable[[], Reducer]] = {
    "half": Half,
    "1-bit": lambda: ErrorFeedback(OneBit()),
    "TernGrad": TernGrad,
    "QSGD 1 level, Elias": lambda: QSGD(1, code=Elias()),
    "QSGD 7 levels, 4 bits": lambda: QSGD(7, code=Packed()),
    "top-k 1 %": lambda: ErrorFeedback(TopK(0.01)),
    # no memory: the same gradient again and again piles up in it, as those of a training do not
    "threshold, about 1 %": lambda: Threshold(0.025),
    "DGC 1 %": lambda: deep_gradient_compression(0.01),
    "coarse 10 %": lambda: ErrorFeedback(Coarse(0.1)),
    "PowerSGD rank 2": lambda: ErrorFeedback(PowerSGD(2)),
    "GradZip rank 2": lambda: ErrorFeedback(GradZip(2)),
}


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    for ranks in RANKS:
        found = slowest(launch(steps, ranks, ROUNDS + 1, backend="gloo"))
        yield compare_rounds(BENCH, f"PowerSGD rank {RANK}, {ranks} ranks", found, "ours", HOOK)
    by_rank = launch(compressors, 2, ROUNDS_ALONE + 1, backend="gloo", timeout_s=120)
    for name in COMPRESSORS:
        found, case = slowest([rank[name] for rank in by_rank]), f"{name}, one layer, 2 ranks"
        yield compare_rounds(BENCH, f"{case}, seconds", found, "ours", "plain")
        yield compare_rounds(BENCH, f"{case}, bytes", found, "ours, bytes", "plain, bytes", "plain", "B")


def batch(rank: int) -> tuple[Tensor, Tensor]:
    """A rank's samples and their classes."""
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(SAMPLES, WIDE[0], generator=generator)
    return x, torch.randint(WIDE[-1], (SAMPLES,), generator=generator)


def steps(comm: Comm, rounds: int) -> Rounds:
    """Seconds that each round took on this rank: by ours, by DDP with torch's hook."""
    x, y = batch(comm.rank)
    contenders = {"ours": ours(comm), HOOK: hooked()}
    found: Rounds = {name: [] for name in contenders}
    for number in range(rounds + 2):  # the hook starts with its third step
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            model, sync = contenders[name]
            comm.barrier()
            start_s = perf_counter()
            nn.functional.cross_entropy(model(x), y).backward()
            sync()
            if number >= 2:
                found[name].append(perf_counter() - start_s)
    return found


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


def compressors(comm: Comm, rounds: int) -> dict[str, Rounds]:
    """Of each compressor on this rank: seconds and bytes of rounds, in turns with the plain mean."""
    model, (x, y) = chain(WIDE), batch(comm.rank)
    nn.functional.cross_entropy(model(x), y).backward()
    grads = {name: p.grad for name, p in model[LAYER].named_parameters() if p.grad is not None}
    return {
        name: in_turns(comm, {"ours": make(), "plain": Mean()}, grads, rounds) for name, make in COMPRESSORS.items()
    }


def in_turns(comm: Comm, reducers: Mapping[str, Reducer], grads: Mapping[str, Tensor], rounds: int) -> Rounds:
    """Of each reducer: the seconds, and under "name, bytes" the bytes that this rank sent."""
    found: Rounds = {name + what: [] for name in reducers for what in ("", ", bytes")}
    for number in range(rounds + 1):
        for name, reducer in reducers.items():
            comm.barrier()
            before, start_s = comm.traffic.bytes, perf_counter()
            reducer.reduce(grads, comm)
            if number:  # the first makes buffers
                found[name].append(perf_counter() - start_s)
                found[f"{name}, bytes"].append(float(comm.traffic.bytes - before))
    return found


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
