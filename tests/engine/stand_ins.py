"""A machine and its Works that a test tells what to do, and a lane whose three streams run side by side."""

import threading

from lt_core.base.errors import Aborted
from tests.typed import typed

SIDE_BY_SIDE = typed(
    "0: 0F0 0OUT0 1F0 1OUT0 1B0 0IN0 0B0", {"0OUT0": "0F0", "1OUT0": "1F0", "0IN0": "0OUT0", "0B0": "0IN0"}
)


class Machine:
    """Notes what it runs and on which thread; `does` maps the text of an action to what then happens."""

    def __init__(self, **does):
        self.does = {name.replace("_", ""): do for name, do in does.items()}
        self.ran, self.threads, self.reasons = [], [], []
        self.aborted = threading.Event()

    def run(self, actions):
        self.threads.append(threading.current_thread())
        self.ran.append("+".join(map(str, actions)))
        do = self.does.get(str(actions[0]).split(">")[0].split("<")[0].replace("_", ""), lambda: None)
        return do()

    def abort(self, reason):
        self.reasons.append(reason)
        self.aborted.set()

    def hangs(self):
        """Runs until aborted, as a message does that never comes."""
        assert self.aborted.wait(15)
        raise Aborted(self.reasons[0])


class Begun:
    """A Work that is over when it is told to."""

    def __init__(self, log, name, over=None):
        self.log, self.name, self.over = log, name, over or threading.Event()

    def wait(self):
        assert self.over.wait(15)
        self.log.append(f"{self.name} over")

    def span(self):
        return 1.0, 2.0
