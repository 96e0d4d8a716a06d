"""Run a function on several ranks: threads of this process, or processes of their own under the real torchrun.

launch(fn, 4, x)     fn(comm, x) on each of 4 ranks, and the list of their results
world()              the same communicator, in a script that `torchrun` itself started, on one host or on many
"""

from __future__ import annotations

import json
import os
import socket
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lt_core.base.errors import UserError
from lt_core.comm import control, cuda, host, limits, parcel, rendezvous

if TYPE_CHECKING:
    from lt_core.comm.comm import Comm

BACKENDS = ("auto", "threads", "gloo", "shared_memory", "nccl")
LONGEST_S = 365 * 86_400  # clocks take no infinity
cuda.watched()  # from here on, so that whatever initialises CUDA can be named
RANK, AGENT = (Path(__file__).with_name(name) for name in ("rank_main.py", "agent.py"))


def launch(fn: Callable[..., Any], size: int, *args: Any, backend: str = "auto", timeout_s: float = 60.0) -> list[Any]:
    """The results of `fn(comm, *args)`, by rank, of `size` ranks; what they print is passed on.

    `fn` and `args` may stand anywhere, a notebook's cell included; what they change, they change in the ranks alone.
    `timeout_s`: the longest any one wait may last (the start, a collective), not `fn` itself. `backend`: "threads",
    "gloo" (processes, CPU), "shared_memory" (the same, on memory they share), "nccl" (processes, a GPU each), "auto"
    (nccl where there are GPUs enough, else gloo).

    Errors: `UserError` for inputs; `RankError` for the rank that failed first, whose exception is its cause;
    `Deadline` where a rank does not come up.

    >>> launch(lambda comm, x: comm.rank * x, 3, 10, backend="threads")
    [0, 10, 20]
    """
    _check(fn, size, timeout_s)
    chosen = resolve(backend, size)
    if chosen == "threads":
        from lt_core.comm import threads

        return threads.run(fn, size, [a.target if isinstance(a, control.Served) else a for a in args], timeout_s)
    if inside():
        raise UserError("a rank cannot launch ranks", attempt="comm.subset(ranks), or backend='threads'")
    from lt_core.comm import folders  # not on Windows, which can import this module to read what it says
    from lt_core.comm.session import Session

    sent, targets = control.split(args)
    call = _packed(fn, sent)
    cuda.watched().tell(lambda text: warnings.warn(text, stacklevel=4))
    folders.sweep()
    sweep(chosen)
    with folders.make(len(call)) as folder, Session(folder, size) as session:
        _leave_job(folder.path, call, chosen, size, timeout_s)
        if targets:
            session.serve(targets)
        session.start(torchrun(folder.path, size, RANK), environment(size))
        session.finish(timeout_s)
        results = ((f"rank {rank}'s result", folder.path / f"result.{rank}") for rank in range(size))
        return [parcel.unpacked(path.read_bytes(), name) for name, path in results]


def world(backend: str = "auto", timeout_s: float = 60.0) -> Comm:
    """This process's communicator with all others that the same torchrun started, on one host or on several.

    Errors: `UserError` where no torchrun started this process.
    """
    if os.environ.get(host.MARK):
        raise UserError("world() stands inside a launch", attempt="comm, the first argument of the launched function")
    if not os.environ.get("TORCHELASTIC_RUN_ID"):
        raise UserError(
            "world() needs torchrun around it", attempt="torchrun --nproc-per-node 4 script.py, or launch()"
        )
    rank, size, local_rank, local_size = (
        int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    )
    if backend == "shared_memory" and local_size < size:
        raise UserError("ranks that share memory are on one host", f"{size} ranks, {local_size} here", "backend='gloo'")
    if local_size == size:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", host.loopback())
    from lt_core.comm import join

    return join.in_torchrun(resolve(backend, local_size), rank, size, local_rank, timeout_s)


def resolve(backend: str, size: int) -> str:
    """The back end that `size` ranks of this host take. Errors: `UserError` where it is unknown or not to be had."""
    if backend not in BACKENDS:
        raise UserError("there is no such back end", repr(backend), ", ".join(BACKENDS))
    gpus = host_gpus() if backend in ("auto", "nccl") else 0
    if backend == "nccl" and gpus < size:
        raise UserError(f"nccl needs a GPU for each of {size} ranks", f"{gpus} GPUs", attempt="backend='gloo'")
    return {"auto": "nccl" if gpus >= size else "gloo"}.get(backend, backend)


def torchrun(folder: Path, size: int, script: Path) -> list[str]:
    """The command that runs `script FOLDER` in `size` processes of this host, which meet in that folder."""
    options = {
        "nnodes": 1,
        "nproc-per-node": size,
        "max-restarts": 0,
        "monitor-interval": 0.1,
        "log-dir": folder / "log",
    }
    if rendezvous.installed():
        options |= {"rdzv-backend": rendezvous.NAME, "rdzv-endpoint": folder, "local-addr": "127.0.0.1"}
    else:
        options |= {"rdzv-backend": "static", "master-addr": "127.0.0.1", "master-port": _free_port()}
        warnings.warn(f"lt_core is not installed, so torchrun meets on port {options['master-port']}", stacklevel=3)
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-P", str(AGENT), *flags, str(script), str(folder)]


def environment(size: int) -> dict[str, str]:
    """This process's environment as each of `size` ranks gets it: its share of the cores, gloo on the loopback."""
    threads = max(1, limits.cores() // size)
    mine = {"OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": host.loopback()}
    return {**os.environ, **mine}


def sweep(backend: str) -> None:
    """Remove the shared memory that dead ranks left: it has a name for a moment only, but they may end in that."""
    if backend == "shared_memory":
        from lt_core.comm.shared_memory import names

        names.sweep()


def host_gpus() -> int:
    """GPUs that this host's ranks could use; asking does not initialise CUDA."""
    import torch

    return torch.cuda.device_count() if torch.distributed.is_nccl_available() else 0


def inside() -> bool:
    """Whether this process is itself a rank."""
    return bool(os.environ.get(host.MARK) or os.environ.get("TORCHELASTIC_RUN_ID"))


def _check(fn: object, size: object, timeout_s: float) -> None:
    from lt_core.comm import checks

    if not callable(fn):
        raise UserError("there is nothing to launch", type(fn).__name__, "a function fn(comm, *args)")
    if not isinstance(size, int):
        raise UserError("the number of ranks is a whole number", size, "1 or more")
    checks.world_size(size)
    if not 0 < timeout_s <= LONGEST_S:
        raise UserError("timeout_s is how long a wait may last", timeout_s, f"more than 0 seconds, {LONGEST_S} at most")


def _packed(fn: Callable[..., Any], args: Sequence[object]) -> bytes:
    try:
        return parcel.packed("the call", (fn, args))
    except UserError:
        for name, value in (("the function", fn), *((f"argument {i + 1}", arg) for i, arg in enumerate(args))):
            parcel.packed(name, value)  # which of them it is
        raise


def _leave_job(folder: Path, call: bytes, backend: str, size: int, timeout_s: float) -> None:
    path = [os.path.abspath(place) for place in sys.path]
    job = {"path": path, "backend": backend, "size": size, "timeout_s": timeout_s}
    (folder / "job.json").write_text(json.dumps(job))
    (folder / "call").write_bytes(call)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
