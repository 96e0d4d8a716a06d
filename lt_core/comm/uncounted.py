"""Messages of our own, which no user asked for: they leave the traffic as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from lt_core.base.traffic import Traffic


class Counted(Protocol):
    """What counts."""

    traffic: Traffic


@contextmanager
def uncounted(comm: Counted) -> Iterator[None]:
    """Keep what this thread sends inside out of `comm.traffic`; what others send meanwhile is counted."""
    me, tallies = threading.get_ident(), (comm.traffic.counted, comm.traffic.by_law)
    mine = [tally for tally in tallies if me not in tally.unheard]  # within another such block: none
    for tally in mine:
        tally.unheard.add(me)
    try:
        yield
    finally:
        for tally in mine:
            tally.unheard.discard(me)
