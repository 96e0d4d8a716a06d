"""Garbage collection rests inside and is as it was on every way out, also when two threads overlap."""

import gc
import threading

import pytest

from lt_core.base.collector import collector_paused


@pytest.fixture(autouse=True)
def as_it_was():
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_it_rests_inside_and_works_after():
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_works_again_after_an_error():
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_who_had_it_off_keeps_it_off():
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_two_threads_that_overlap_leave_it_on():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with collector_paused():
            inside.set()
            leave.wait(5)

    thread = threading.Thread(target=other)
    with collector_paused():
        thread.start()
        assert inside.wait(5)
    leave.set()
    thread.join(5)
    assert gc.isenabled() and not thread.is_alive()
