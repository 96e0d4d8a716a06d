"""What a lab runs on, in five lines, so that no number below is taken for another machine's."""

from __future__ import annotations

from lt_core.base.cluster import Cluster
from lt_core.base.units import bytes_text, rate_text, seconds_text
from lt_core.comm import limits
from lt_core.teaching.shown import say

WHY = {
    "gloo": "not every rank has a GPU of its own here",
    "nccl": "each rank has a GPU of its own",
    "threads": "they are threads of one process",
}


def banner(machine: Cluster, backend: str, cores: int | None = None) -> None:
    """Show what a run stands on: `banner(here(comm), comm.backend)`.

    machine: measured by `here` on the ranks.  backend: what carries their messages.  cores: of this machine, unless
    others are given.
    """
    say("\n".join(lines(machine, backend, limits.cores() if cores is None else cores)))


def lines(machine: Cluster, backend: str, cores: int) -> list[str]:
    """The five lines: cores, ranks, back end and why, memory of a rank, link."""
    ranks, wire = machine.size, machine.inner
    shared = f", shared by {ranks} ranks" if ranks > cores else ""
    link = f"{rate_text(wire.bytes_per_s)}, {seconds_text(wire.latency_s)} until the first byte"
    return [
        f"cores    {cores}{shared}",
        f"ranks    {ranks}, each a {'thread' if backend == 'threads' else 'process'} of its own",
        f"carried  by {backend}{f': {WHY[backend]}' if backend in WHY else ''}",
        f"memory   {bytes_text(machine.device.memory_bytes)} for each rank ({machine.device.name})",
        f"link     {link} (by ping-pong, now)",
    ]
