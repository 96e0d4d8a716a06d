"""Ranks call an object of the launching process: one key, one thread a connection, errors and ends come across."""

import os
import pickle
import queue
import socket
import stat
import threading
from multiprocessing.connection import Connection, answer_challenge

import pytest

from lt_core.base.errors import Aborted, UserError
from lt_core.comm import control, host, launch
from lt_core.comm.control import Door, StandIn, served


class Counter:
    """Something with state, which waits, raises, and takes names."""

    def __init__(self):
        self.count, self.free = 0, threading.Event()

    def add(self, by, *, twice=False):
        self.count += by * (1 + twice)
        return self.count

    def hold(self):
        return self.free.wait(30)

    def fail(self):
        raise KeyError("not there")

    def fail_oddly(self):
        class Odd(Exception):
            def __init__(self, one, two):
                super().__init__("odd")

        raise Odd(1, 2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A launch's folder, named in the environment as in a rank."""
    monkeypatch.setenv(host.MARK, str(tmp_path))
    return tmp_path


@pytest.fixture
def door(folder):
    """A door that serves a Counter; whoever knocks is let in."""
    held = Door(folder, [Counter()])
    held.target = held._targets[0]
    porter = threading.Thread(target=_let_in, args=(held,))
    porter.start()
    yield held
    held.close()
    porter.join(5)
    assert not porter.is_alive()


def _let_in(door):
    while True:
        try:
            door.accept()
        except OSError:
            return


def test_calls_values_and_names_come_across(door):
    counter = pickle.loads(pickle.dumps(StandIn(0)))
    assert [counter.add(2), counter.add(by=3, twice=True)] == [2, 8]
    assert door.target.count == 8


def test_what_the_object_raises_the_rank_raises(door):
    with pytest.raises(KeyError, match="not there"):
        StandIn(0).fail()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        StandIn(0).nothing()
    with pytest.raises(RuntimeError, match="Odd: odd"):
        StandIn(0).fail_oddly()
    assert StandIn(0).add(1) == 1  # and the wire goes on


def test_who_waits_holds_up_nobody(door):
    counter, waited = StandIn(0), []
    waiting = threading.Thread(target=lambda: waited.append(counter.hold()))
    waiting.start()
    assert counter.add(1) == 1
    door.target.free.set()
    waiting.join(5)
    assert waited == [True]


def test_who_waits_is_freed_when_the_launch_ends(door):
    counter, freed = StandIn(0), []

    def wait():
        with pytest.raises(Aborted, match="the launch has ended") as caught:
            counter.hold()
        freed.append(caught.value)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert counter.add(1) == 1
    door.close()
    waiting.join(5)
    door.target.free.set()
    assert len(freed) == 1
    with pytest.raises(Aborted, match="the launch has ended"):
        counter.add(1)


def test_nothing_is_unpickled_for_one_who_does_not_know_the_key(door, folder):
    """A local user who reaches the socket sends a pickle that would make a file."""
    trap = folder / "trapped"
    evil = b"cposix\nsystem\n(S'touch " + str(trap).encode() + b"'\ntR."
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(folder / control.SOCKET))
        connection = Connection(wire.detach())
    with connection, pytest.raises((EOFError, OSError)):
        connection.recv_bytes()  # the challenge
        connection.send_bytes(evil)
        connection.recv_bytes()  # "#FAILURE#"
        connection.send_bytes(evil)
        connection.recv_bytes()
    assert not trap.exists()
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(folder / control.SOCKET))
        connection = Connection(wire.detach())
    with connection, pytest.raises(Exception, match="digest sent was rejected"):
        answer_challenge(connection, b"not the key")


def test_the_key_is_the_users_alone(door, folder):
    assert stat.S_IMODE(os.stat(folder / control.KEY).st_mode) == 0o600
    assert len((folder / control.KEY).read_bytes()) == 32


def test_served_is_an_argument_itself():
    with pytest.raises(UserError, match="argument 2 cannot be sent") as caught:
        launch(print, 2, 1, [served(queue.Queue())], backend="gloo")
    assert "served(...) stands inside another value" in str(caught.value)


def test_threads_get_the_object_itself():
    counter = Counter()
    assert launch(lambda comm, c: c is counter, 2, served(counter), backend="threads") == [True, True]
