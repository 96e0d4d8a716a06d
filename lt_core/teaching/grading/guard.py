"""While a learner's function runs, it reaches no other machine and starts no process; whatever it tried is noted.

Python asks audit hooks before it connects, forks or signals. A hook stays for as long as its process, so this stands
in processes that grade and in nothing else. C code and what it starts are not asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROCESSES = {
    "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn", "os.system", "subprocess.Popen",
}  # fmt: skip
TO_HOSTS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
NAMES = {"socket.getaddrinfo", "socket.gethostbyname"}
HERE = {"localhost", "127.0.0.1", "::1", "", None}


class Refused(RuntimeError):
    """What a learner's code may not do while it is graded."""


class Guard:
    """A hook that refuses while it is `closed`, and notes in `tried` what it refused."""

    def __init__(self) -> None:
        self.closed, self.tried = True, list[str]()
        sys.addaudithook(self._ask)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Inside it everything is allowed: ranks are started."""
        self.closed = False
        try:
            yield
        finally:
            self.closed = True

    def _ask(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.closed and (what := refused(event, arguments)):
            self.tried += [what] * (what not in self.tried)
            raise Refused(f"{what}: not while it is graded")


def refused(event: str, arguments: tuple[Any, ...]) -> str:
    """What an event is in words, if it is refused; else ""."""
    if event in PROCESSES:
        return f"{event}, a process" if "kill" not in event else f"{event}, a signal"
    host = arguments[1] if event in TO_HOSTS else arguments[0] if event in NAMES else None
    if isinstance(host, tuple):
        host = host[0]
    elif event in TO_HOSTS:
        return ""  # a socket of this machine alone, named by a path
    return f"network, {_text(host)}" if _text(host) not in HERE else ""


def _text(host: Any) -> Any:
    return host.decode(errors="replace") if isinstance(host, bytes) else host
