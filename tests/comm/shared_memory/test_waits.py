"""A wait ends: it is over, time is, the group was ended, or who was to come has died."""

import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from lt_core.base.errors import Aborted, Deadline
from lt_core.comm import host
from lt_core.comm.shared_memory import waits
from lt_core.comm.shared_memory.waits import Peers, Wait


def polled(peers, timeout_s=10.0, polls=10**6):
    """Poll for rank 1 until it raises."""
    wait = Wait(peers, "all_reduce", timeout_s, lambda: [1])
    for _ in range(polls):
        wait.poll()


def of(lives, ended="", looks=0):
    return Peers(0, looks, lambda: ended, lambda: False, lives)


LIVING = [(0, ""), (0, "")]


def test_too_late():
    with pytest.raises(Deadline) as caught:
        polled(of(LIVING), timeout_s=0.01)
    assert str(caught.value) == "rank 0 waited 0.01 s in all_reduce: of 2 ranks [1] have not come"


def test_ended():
    with pytest.raises(Aborted, match="enough"):
        polled(of(LIVING, "enough"))


def test_looks_come_first():
    polled(of(LIVING, "enough", looks=5), polls=5)
    with pytest.raises(Aborted, match="enough"):
        polled(of(LIVING, "enough", looks=5), polls=6)


def test_what_can_be_done_meanwhile_is_done():
    done = []
    peers = Peers(0, 0, lambda: "", lambda: bool(done.append(1)) or True, LIVING)
    polled(peers, polls=3)
    assert done == [1] * 3


@pytest.mark.parametrize("urgent", [True, False])
def test_where_nobody_waits_yet_a_look_is_rare(urgent, monkeypatch):
    """Beside a backward each look took the core from who computed: a third of a bucket's time was looking."""
    slept, yielded = [], []
    monkeypatch.setattr(waits, "time", SimpleNamespace(perf_counter=time.perf_counter, sleep=slept.append))
    monkeypatch.setattr(waits, "os", SimpleNamespace(sched_yield=lambda: yielded.append(1)))
    monkeypatch.setattr(waits, "YIELD_S", 3600.0)
    wait = Wait(of(LIVING, looks=1), "all_reduce", 10.0, list, lambda: urgent)
    for _ in range(30):
        wait.poll()
    if urgent:
        assert len(yielded) == 29 and not slept
    else:
        assert len(slept) == 29 and not yielded
        assert min(slept) >= waits.SHORT_SLEEP_S and max(slept) <= waits.LONG_SLEEP_S == slept[-1]


def test_a_rank_that_died():
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    lives = [(0, ""), (child.pid, host.life(child.pid))]
    child.kill()
    child.wait()
    with pytest.raises(Aborted) as caught:
        polled(of(lives))
    assert str(caught.value) == f"rank 0 lost rank 1 in all_reduce: its process {child.pid} has ended"


def test_a_fence_elsewhere_than_on_x86_takes_a_lock_twice(monkeypatch):
    class Counted:
        taken = 0

        def __enter__(self):
            lock.acquire()
            Counted.taken += 1

        def __exit__(self, *_):
            lock.release()

    lock = threading.Lock()
    monkeypatch.setattr(waits, "_LOCK", Counted())
    monkeypatch.setattr(waits, "IN_ORDER", True)
    waits.fence()
    assert Counted.taken == 0
    monkeypatch.setattr(waits, "IN_ORDER", False)
    waits.fence()
    assert Counted.taken == 2
