"""One rank's process, from torchrun's start to its end: python rank_main.py FOLDER, with RANK in the environment.

What it has to say lies in the launch's folder: its lines in pipes, its result or its failure in a file of its own.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from lt_core.comm.comm import Comm


def main(folder: Path) -> None:
    """Take part in the launch of that folder: one result or one failure, then wait until all may leave."""
    job = json.loads((folder / "job.json").read_text())
    sys.path[:] = job["path"]  # what the launching process can import, this one can
    parent = os.getppid()

    from lt_core.comm import failure, host, output

    host.die_with_parent()
    _check_parent(parent)
    rank = int(host.environment("RANK"))
    output.redirect(folder, rank)
    report = _reporter(folder, rank)
    leave = os.open(folder / "leave", os.O_RDONLY)
    report("started")
    comm: Comm | None = None
    try:
        gc.disable()  # of what is imported nothing is garbage
        from lt_core.comm import join, parcel

        gc.freeze()
        gc.enable()
        function, args = parcel.unpacked((folder / "call").read_bytes())
        came = join.in_folder(folder, job["backend"], rank, job["size"], job["timeout_s"])
        comm = join.sharing(came, job["backend"])
        report("ready")
        _write(folder / f"result.{rank}", parcel.packed("the result", _result(function, comm, args)))
        _flush()
        outcome = "done"
    except BaseException as error:
        failed = failure.of_exception(rank, time.monotonic(), error)
        _write(folder / f"failure.{rank}", pickle.dumps(failed))
        outcome = "failed"
    output.flush()
    report(outcome)
    if outcome == "failed" and comm is not None:
        comm.abort(f"rank {rank} raised {failed.kind}: {failed.message}")
    os.read(leave, 1)  # a byte for each rank, once all are done
    if comm is not None:
        join.leave()


def _check_parent(parent: int) -> None:
    if os.getppid() != parent:  # it died before we asked to die with it
        os._exit(1)


def _reporter(folder: Path, rank: int) -> Callable[[str], None]:
    pipe = os.open(folder / "reports", os.O_WRONLY)

    def report(what: str) -> None:
        line = json.dumps({"rank": rank, "what": what, "pid": os.getpid()}) + "\n"
        os.write(pipe, line.encode())  # shorter than a pipe's atomic write, so lines of ranks never mix

    return report


def _result(function: Callable[..., Any], comm: Comm, args: tuple[Any, ...]) -> Any:
    rank_pid = os.getpid()
    try:
        return function(comm, *args)
    except SystemExit as error:
        if error.code in (None, 0):  # as a script's: it ended well
            return None
        raise
    finally:
        if os.getpid() != rank_pid:
            _end_fork()


def _end() -> NoReturn:
    """End as a script does, but for the interpreter's own end, for which torch takes half a second."""
    threading._shutdown()  # type: ignore[attr-defined]  # executors' threads end when told; others may start more
    atexit._run_exitfuncs()
    _flush()
    os._exit(0)


def _end_fork() -> None:
    """A fork that the function made and that comes out of it here ends as a script's would: one rank answers."""
    error = sys.exc_info()[1]
    if error is not None:
        traceback.print_exception(error)
    _flush()
    os._exit(error is not None)


def _flush() -> None:
    """Write out what was printed, unless the function has closed or replaced the stream by nothing."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


def _write(path: Path, data: bytes) -> None:
    whole = path.with_suffix(path.suffix + ".part")
    try:
        whole.write_bytes(data)
    except OSError:
        whole.unlink(missing_ok=True)  # so that what is said of it finds room
        raise
    whole.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    _end()
