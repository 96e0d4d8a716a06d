"""What was begun is done by one thread at a time, also where one ends while the next collective is begun."""

import threading

from lt_core.comm.shared_memory import lane
from lt_core.comm.shared_memory.lane import Begun, Lane


class Gate:
    """A lock that holds its thread up where it has just let go, once that thread says it will serve no more."""

    def __init__(self, held):
        self.lane, self.lock, self.idle, self.go = held, threading.Lock(), threading.Event(), threading.Event()
        self.first = None

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        serves = self.lane._served
        self.lock.release()
        if threading.current_thread() is self.first and not serves:
            self.idle.set()
            self.go.wait(10)


def begun(run):
    return Begun(run, 10.0, lambda error: None, lambda: "late")


def test_a_thread_that_ends_leaves_what_comes_to_the_next(monkeypatch):
    """Two threads at once took turns in any order: ranks then did two collectives in two orders."""
    monkeypatch.setattr(lane, "IDLE_S", 0.01)
    held, order, release = Lane(), [], threading.Event()
    gate = held._changing = Gate(held)

    def note():
        gate.first = threading.current_thread()

    held.later(begun(note)).wait()
    assert gate.idle.wait(10)
    works = [
        held.later(begun(lambda: release.wait(10))),
        *(held.later(begun(lambda k=k: order.append(k))) for k in (1, 2)),
    ]
    gate.go.set()
    gate.first.join(2)
    alive = gate.first.is_alive()
    release.set()
    for work in works:
        work.wait()
    assert not alive and order == [1, 2]


def test_a_collective_is_told_when_somebody_waits_for_it():
    told, begin, seen = [], threading.Event(), threading.Event()

    def run():
        told.append(work.awaited)
        seen.set()
        begin.wait(10)
        told.append(work.awaited)

    work = begun(run)
    Lane().later(work)
    assert seen.wait(10)
    waiter = threading.Thread(target=work.wait)
    waiter.start()
    while not work.awaited:
        assert waiter.is_alive()
    begin.set()
    waiter.join(10)
    assert told == [False, True]
