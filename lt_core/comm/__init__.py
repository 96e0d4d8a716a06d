"""Ranks and wires: who computes, and how bytes get from one to another.

Every technique is a function of a communicator (`Comm`), and every byte that leaves a rank leaves it there, so that it
can be counted. The same function runs on threads of one process, on processes over gloo, on GPUs over NCCL; a
communicator around a communicator slows its links down or checks what NCCL would not forgive.

| file | idea | source |
|---|---|---|
| comm | the one door: exchange, barrier, subset, the backend's own collectives | MPI |
| buffers, streamed | tensors that verbs work on where they lie; copies that go round the caches | - |
| threads | ranks are threads of this process | - |
| launch, agent, session, rank_main | a function on several ranks, from torchrun's start to the last result | torchrun |
| rendezvous, folders, keeper, kept, host | meeting without a port, and leaving nothing behind | - |
| output, failure, parcel | what ranks print; who failed first; what crosses between processes | - |
| cuda | who has initialised CUDA in the launching process, where it does not belong | - |
| control | an object of the launching process, called from its ranks | - |
| processes, join, groups, all_here, meeting, begun | ranks are processes: gloo on CPUs, NCCL on GPUs | c10d |
| small, sums | a small all-reduce over gloo in one round; sums in the order of ranks | - |
| shared_memory | processes of one host that share memory, asked for by name | Rabenseifner 2004 |
| laws, checks, calls, verbs, outside | what verbs cost and refuse, on every back end | Patarasuk and Yuan 2009 |
| contract | a group held to what NCCL asks for, so that a CPU's tests find it | NCCL user guide |
| shaped | wires as slow as you say, ports that serve one message at a time | alpha-beta model |
| group | ranks that stay warm for a notebook, one cell after another | - |
| mesh | a grid of ranks, a group for each of its rows | Narayanan and others 2021 |
| clocks, uncounted | one time for all ranks; our own messages | Cristian 1989 |
| here, limits | this machine, measured; what a container may use of it | - |
"""

from typing import TYPE_CHECKING, Any

from lt_core.comm.control import served
from lt_core.comm.launch import launch, world  # now, lest the module of that name hide the function

if TYPE_CHECKING:
    from lt_core.comm.comm import Comm

__all__ = ["Comm", "launch", "served", "world"]


def __getattr__(name: str) -> Any:
    # what needs torch comes on first use: torchrun loads this folder in every run, and `import lt_core` costs nothing
    if name != "Comm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lt_core.comm.comm import Comm

    return Comm
