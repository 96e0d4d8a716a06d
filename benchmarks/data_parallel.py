"""A data-parallel step against torch's DDP, and how much of its communication a backward leaves exposed.

Step: forward, backward, gradients to their mean, SGD, of an MLP of 29.5 million parameters; each rank has samples of
its own and one thread. Ours talks over shared memory, DDP over gloo, `plain` does not talk at all; all live in the same
processes and take turns, and so does who goes first. A step lasts as long as its slowest rank took from one barrier on.

Exposed: over a link shaped to 1 GB/s, buckets of 8 MiB, the seconds of the communication alone that the overlapped step
still pays: alone - (after - overlapped), where `after` sends the same buckets when the backward is over. Each lasts as
long as its slowest rank took; the steps take turns in who goes first. The step takes more than that over one that does
not talk, for a core that computes has to copy and sum the gradients, too: `added by the link` is what the link adds to
the same step without it, `added by the cores` what that step takes more than the silent one, and the two together are
that larger number. `cores free`: the same with a computation of the same length that is done elsewhere. `law`: what the
backward of that round cannot hide.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks._elsewhere import Elsewhere, computed_s
from benchmarks.rows import Rounds, Row, compare_rounds, printed, slowest
from lt_core.base.cluster import Wire
from lt_core.comm import Comm, launch, laws
from lt_core.comm.shaped import shaped
from lt_core.data_parallel.replicate import overlapped
from lt_core.data_parallel.replicate.buckets import in_backward_order
from lt_core.models.chain import WIDE, chain

BENCH = "data_parallel"
RANKS, SAMPLES = (2, 4), (16, 64)
ROUNDS, EXPOSED_ROUNDS = 51, 31  # of a step; of a difference of two steps
ALIKE_STEPS = 4  # after which ours and DDP's still agree to six digits
LINK = Wire("1 GB/s", 10e-6, 1e9)
LINK_BUCKET_BYTES = 8 * 2**20
DDP, PLAIN = "DDP", "plain"


class Contender(NamedTuple):
    """A model, what follows its backward, its optimizer, and what its backward stands in."""

    model: nn.Module
    sync: Callable[[], object]
    sgd: torch.optim.Optimizer
    window: Callable[[], AbstractContextManager[object]] = nullcontext


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    for size in RANKS:
        for samples in SAMPLES:
            found = slowest(launch(steps, size, samples, ROUNDS + 1, backend="shared_memory"))
            for peer in (DDP, PLAIN):
                yield compare_rounds(BENCH, f"step, {size} ranks, {samples} samples", found, "ours", peer)
    for elsewhere in (False, True):
        found = slowest(launch(exposed, 2, SAMPLES[-1], EXPOSED_ROUNDS + 1, elsewhere, backend="shared_memory"))
        three = zip(found["alone"], found["after"], found["overlapped"], strict=True)
        found["exposed"] = [alone - (after - beside) for alone, after, beside in three]
        case = f"exposed communication, {LINK.name} link" + ", cores free" * elsewhere
        yield compare_rounds(BENCH, case, found, "exposed", "alone", PLAIN)
        yield compare_rounds(BENCH, case, found, "exposed", "law")
        if not elsewhere:
            for part, longer, shorter in (("link", "overlapped", "unshaped"), ("cores", "unshaped", "silent")):
                found[part] = [a - b for a, b in zip(found[longer], found[shorter], strict=True)]
                yield compare_rounds(BENCH, f"{case}, added by the {part}", found, part, "alone", PLAIN)


def steps(comm: Comm, samples: int, rounds: int) -> Rounds:
    """Seconds that each step took on this rank: ours, DDP's, and one that does not talk."""
    batch = batch_of(comm.rank, samples)
    contenders = {"ours": ours(comm), DDP: ddp(), PLAIN: plain()}
    found: Rounds = {name: [] for name in contenders}
    for number in range(rounds):
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            found[name].append(step_s(comm, contenders[name], batch))
        if number + 1 == ALIKE_STEPS:
            check_trained_alike(contenders["ours"].model, contenders[DDP].model)
    check_same(comm, contenders["ours"].model)
    return found


def ours(comm: Comm) -> Contender:
    """A replica over this communicator."""
    return replicated(overlapped.replicate(chain(WIDE), comm))


def replicated(replica: overlapped.Overlapped) -> Contender:
    """Its steps as they are meant."""
    return Contender(replica.model, replica.sync, torch.optim.SGD(replica.model.parameters(), 1e-3))


def following(replica: overlapped.Overlapped) -> Contender:
    """Its steps with all messages after the backward: what a window left is sent by the sync."""
    return replicated(replica)._replace(window=replica.no_sync)


def ddp() -> Contender:
    """The peer over gloo, as its documentation recommends: gradients are views of its buckets."""
    group = dist.new_group(backend="gloo")
    model = DistributedDataParallel(chain(WIDE), process_group=group, gradient_as_bucket_view=True)
    return Contender(model, lambda: None, torch.optim.SGD(model.parameters(), 1e-3))


def plain() -> Contender:
    """Each rank by itself."""
    model = chain(WIDE)
    return Contender(model, lambda: None, torch.optim.SGD(model.parameters(), 1e-3))


def batch_of(rank: int, samples: int) -> tuple[Tensor, Tensor]:
    """A rank's samples and their classes."""
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(samples, WIDE[0], generator=generator)
    return x, torch.randint(WIDE[-1], (samples,), generator=generator)


def step_s(comm: Comm, contender: Contender, batch: tuple[Tensor, Tensor]) -> float:
    """What one step takes on this rank, from a barrier on."""
    comm.barrier()
    start_s = perf_counter()
    with contender.window():
        nn.functional.cross_entropy(contender.model(batch[0]), batch[1]).backward()
    contender.sync()
    contender.sgd.step()
    contender.sgd.zero_grad()
    return perf_counter() - start_s


def check_trained_alike(model: nn.Module, peer: nn.Module) -> None:
    """The parameters are the peer's but for rounding, which grows with the steps."""
    for p, other in zip(model.parameters(), peer.parameters(), strict=True):
        assert torch.allclose(p, other, rtol=1e-4, atol=1e-6), "not what DDP trained"


def check_same(comm: Comm, model: nn.Module) -> None:
    """Every rank has the same bits."""
    for p in model.parameters():
        first = p.detach().clone()
        comm.broadcast(first, 0)
        assert torch.equal(first, p), "ranks differ"


def exposed(comm: Comm, samples: int, rounds: int, elsewhere: bool) -> Rounds:
    """Seconds of each round on this rank: the communication alone; a step with it after the backward, with it beside,
    with it beside and no link, and one without it.
    """
    batch = batch_of(comm.rank, samples)
    linked = overlapped.replicate(chain(WIDE), shaped(comm, LINK), bucket_bytes=LINK_BUCKET_BYTES)
    forward_s, backward_s = computed_s(comm, chain(WIDE), batch)
    if elsewhere:
        Elsewhere(linked.model, forward_s, backward_s)
        batch = batch_of(comm.rank, 1)
    contenders = {"after": following(linked), "overlapped": replicated(linked)}
    if not elsewhere:
        unlinked = overlapped.replicate(chain(WIDE), comm, bucket_bytes=LINK_BUCKET_BYTES)
        contenders |= {"unshaped": replicated(unlinked), "silent": plain()}
    found: Rounds = {name: [] for name in ("alone", "law", *contenders)}
    for number in range(rounds):
        found["alone"].append(alone_s(comm, linked))
        if not elsewhere:  # the cores' speed is not the same in every round
            _, backward_s = computed_s(comm, contenders["silent"].model, batch, 1)
        found["law"].append(law_s(comm, linked, backward_s))
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            found[name].append(step_s(comm, contenders[name], batch))
    return found


def law_s(comm: Comm, replica: overlapped.Overlapped, backward_s: float) -> float:
    """What stays exposed by the law of `overlapped`, each layer's share of the backward being that of its weights."""
    names = in_backward_order(replica.parameters, LINK_BUCKET_BYTES)
    sizes = [sum(replica.parameters[name].nbytes for name in bucket) for bucket in names]
    travels_s = [
        laws.seconds("all_reduce", n, comm.size, lambda k: LINK.latency_s + k / LINK.bytes_per_s) for n in sizes
    ]
    return overlapped.law_seconds(0.0, [backward_s * n / sum(sizes) for n in sizes], travels_s) - backward_s


def alone_s(comm: Comm, replica: overlapped.Overlapped) -> float:
    """What the communication of a step takes without the step."""
    for p in replica.parameters.values():
        p.grad = torch.ones_like(p)
    comm.barrier()
    start_s = perf_counter()
    replica.sync()
    passed_s = perf_counter() - start_s
    replica.model.zero_grad()
    return passed_s


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
