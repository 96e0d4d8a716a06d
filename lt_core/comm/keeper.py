"""The keeper stands between the launching process and torchrun, and sees to it that nothing is left behind.

    launching process -> keeper -> torchrun -> ranks -> what they started      python -S -E keeper.py PARENT COMMAND...

It adopts orphans, so that whatever a rank started stays below it, and ends all of it as soon as its standard input is
closed, the launching process dies (however), it gets SIGTERM, or torchrun ends: then it says so on its output. Where
nobody wants the launch any more, it takes its folder away too.
"""

from __future__ import annotations

import importlib.util
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)  # those of a terminal are for the launching process


def load_host() -> ModuleType:
    """comm/host.py by its path, since this script runs without the package: it starts in 20 ms and weighs 10 MB."""
    spec = importlib.util.spec_from_file_location("host", Path(__file__).with_name("host.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keep(parent: int, command: list[str]) -> None:
    """Run the command until it ends, or until nobody wants it any more; then end whatever runs below."""
    host = load_host()
    host.adopt_orphans()
    for sign in SIGNALS:
        signal.signal(sign, signal.SIG_IGN)
    woken = _wake_on(signal.SIGCHLD, signal.SIGTERM)
    watched = [fd for fd in (0, woken, host.watch(parent)) if fd is not None]
    # held, and never asked: a Popen that is forgotten collects its process, and we would wait for it in vain
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, preexec_fn=lambda: _as_child(host))
    code, wanted = None, os.getppid() == parent
    while wanted and code is None:
        wanted = select.select(watched, [], [])[0] == [woken] and signal.SIGTERM not in os.read(woken, 4096)
        code = _collect(child.pid)
    host.end(lambda: _below(host, child.pid))
    if code is None:
        shutil.rmtree(host.environment(host.MARK), ignore_errors=True)
    else:
        print(f"ended {code}", flush=True)


def _below(host: ModuleType, child: int) -> list[int]:
    _collect(child)  # so that ended ones are no longer listed
    below: list[int] = host.descendants(os.getpid())
    return below


def _wake_on(*signs: signal.Signals) -> int:
    """A descriptor from which the numbers of the signals that came can be read."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for sign in signs:
        signal.signal(sign, lambda *_: None)
    return reader


def _as_child(host: ModuleType) -> None:
    host.die_with_parent()
    for sign in SIGNALS:
        signal.signal(sign, signal.SIG_DFL)


def _collect(child: int) -> int | None:
    """Take note of all children and adopted orphans that ended; the exit code of `child` if it was among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    keep(int(sys.argv[1]), sys.argv[2:])
