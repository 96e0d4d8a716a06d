"""Data parallelism in one file, without a class of anybody's: every rank has the model, and a part of each batch.

    torchrun --nproc-per-node 4 ddp.py --steps 20
    torchrun --nproc-per-node 4 ddp.py --model mine.py:make      # make() gives your module: bytes in, 256 logits out

It trains a small GPT on the standard library's text, and prints the loss of all ranks' samples.
"""

import argparse
import importlib.util
from collections.abc import Callable, Iterator

import torch
from torch import nn

from lt_core import world
from lt_core.comm import Comm
from lt_core.data.text import text, windows
from lt_core.models.gpt import gpt, loss

BATCH, CONTEXT, BUCKET_BYTES = 16, 64, 2**20


def train(comm: Comm, make: Callable[[], nn.Module] = gpt, steps: int = 20, step_size: float = 0.3) -> Iterator[float]:
    """The loss of each step, over all ranks' samples."""
    model, data, random = make().to(comm.device), text().data, torch.Generator().manual_seed(0)
    for x in [*model.parameters(), *model.buffers()]:
        comm.broadcast(x.data, 0)  # everybody starts as rank 0 does
    for _ in range(steps):
        x, y = (part[comm.rank :: comm.size].to(comm.device) for part in windows(data, CONTEXT, BATCH, random))
        total = loss(model(x), y, "sum") / (BATCH * CONTEXT)
        model.zero_grad()
        total.backward()
        for bucket in buckets([p for p in model.parameters() if p.grad is not None]):
            flat = torch.cat([p.grad.reshape(-1) for p in bucket])
            comm.all_reduce(flat)  # parts of one mean, so their sum is all of it
            for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.data -= step_size * piece.view(p.shape)
        seen = total.detach()
        comm.all_reduce(seen)
        yield seen.item()


def buckets(parameters: list[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Neighbours that fit in one message, from the last parameter on."""
    bucket: list[nn.Parameter] = []
    for p in reversed(parameters):
        if bucket and sum(q.nbytes for q in bucket) + p.nbytes > BUCKET_BYTES:
            yield bucket
            bucket = []
        bucket.append(p)
    yield bucket


def made(place: str) -> Callable[[], nn.Module]:
    """The function NAME of FILE."""
    file, _, name = place.rpartition(":")
    if not file:
        raise SystemExit(f"--model takes FILE:NAME, such as mine.py:make; got {place}")
    spec = importlib.util.spec_from_file_location("mine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def main() -> None:
    """Train on the ranks that torchrun started."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--model", metavar="FILE:NAME", help="a function of yours that makes the model")
    words.add_argument("--steps", type=int, default=20)
    said, comm = words.parse_args(), world()
    for step, value in enumerate(train(comm, made(said.model) if said.model else gpt, said.steps)):
        if comm.rank == 0:
            print(f"step {step:3}: loss {value:.4f}", flush=True)


if __name__ == "__main__":
    main()
