"""Data parallelism whose gradients travel compressed, in one file: `ddp.py` with a reducer in its buckets' place.

    torchrun --nproc-per-node 4 compress.py --method power_sgd --rank 2 --wire kitchen
    torchrun --nproc-per-node 4 compress.py --method top_k --density 0.01 --forget
    torchrun --nproc-per-node 4 compress.py --model mine.py:make    # make() gives your module: bytes in, 256 logits out

It trains a small GPT on the standard library's text. A line a step: the loss of all ranks' samples, the bytes that
rank 0 sent for its gradients, and how long that took on the wire.
"""

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import NamedTuple

import torch
from torch import nn

from lt_core import world
from lt_core.base.cluster import KITCHEN, OFFICE, RACK
from lt_core.collectives import Mean
from lt_core.collectives.reducer import Reducer
from lt_core.comm import Comm
from lt_core.comm.shaped import shaped
from lt_core.compression import QSGD, ErrorFeedback, Half, OneBit, Packed, PowerSGD, TernGrad, TopK
from lt_core.data.text import text, windows
from lt_core.models.gpt import gpt, loss

BATCH, CONTEXT = 16, 64
WIRES = {wire.name: wire for wire in (KITCHEN, OFFICE, RACK)}
BIASED = {"one_bit", "top_k", "power_sgd"}  # these learn only if what they lose is kept
METHODS: dict[str, Callable[[argparse.Namespace], Reducer]] = {
    "dense": lambda said: Mean(),
    "half": lambda said: Half(),
    "one_bit": lambda said: OneBit(),
    "terngrad": lambda said: TernGrad(),
    "qsgd": lambda said: QSGD(said.levels, code=Packed()),
    "top_k": lambda said: TopK(said.density),
    "power_sgd": lambda said: PowerSGD(said.rank),
}


class Step(NamedTuple):
    """The loss of all samples before it; what this rank's gradients took on the wire."""

    loss: float
    sent_bytes: int
    wire_s: float


def train(
    comm: Comm, reducer: Reducer, make: Callable[[], nn.Module] = gpt, steps: int = 20, step_size: float = 0.3
) -> Iterator[Step]:
    """Each step in turn."""
    model, data, random = make().to(comm.device), text().data, torch.Generator().manual_seed(0)
    for x in [*model.parameters(), *model.buffers()]:
        comm.broadcast(x.data, 0)  # everybody starts as rank 0 does
    for _ in range(steps):
        x, y = (part[comm.rank :: comm.size].to(comm.device) for part in windows(data, CONTEXT, BATCH, random))
        total = loss(model(x), y, "sum") / (BATCH * CONTEXT)
        model.zero_grad()
        total.backward()
        used = {name: p for name, p in model.named_parameters() if p.grad is not None}
        before, begun_s = comm.traffic.bytes, perf_counter()
        mean = reducer.reduce({name: p.grad for name, p in used.items()}, comm).mean
        sent_bytes, wire_s = comm.traffic.bytes - before, perf_counter() - begun_s
        for name, p in used.items():
            p.data -= step_size * comm.size * mean[name]  # ranks brought parts of one mean, so their sum is all of it
        seen = total.detach()
        comm.all_reduce(seen)
        yield Step(seen.item(), sent_bytes, wire_s)


def made(place: str) -> Callable[[], nn.Module]:
    """The function NAME of FILE."""
    file, _, name = place.rpartition(":")
    if not file:
        raise SystemExit(f"--model takes FILE:NAME, such as mine.py:make; got {place}")
    spec = importlib.util.spec_from_file_location("mine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def words() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=METHODS, default="power_sgd")
    parser.add_argument("--rank", type=int, default=2, help="columns of PowerSGD's factors")
    parser.add_argument("--density", type=float, default=0.01, help="the share of elements that top_k sends")
    parser.add_argument("--levels", type=int, default=127, help="of QSGD")
    parser.add_argument("--forget", action="store_true", help="keep no memory of what was not sent")
    parser.add_argument("--wire", choices=WIRES, help="emulate this one; left out: the real one")
    parser.add_argument("--model", metavar="FILE:NAME", help="a function of yours that makes the model")
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args()


def main() -> None:
    """Train on the ranks that torchrun started."""
    said, comm = words(), world()
    comm = shaped(comm, WIRES[said.wire]) if said.wire else comm
    reducer = METHODS[said.method](said)
    if said.method in BIASED and not said.forget:
        reducer = ErrorFeedback(reducer)
    for number, step in enumerate(train(comm, reducer, made(said.model) if said.model else gpt, said.steps)):
        if comm.rank == 0:
            took = f"{step.sent_bytes:,} bytes, {1000 * step.wire_s:.0f} ms on the wire"
            print(f"step {number:3}: loss {step.loss:.4f}, {took}", flush=True)


if __name__ == "__main__":
    main()
