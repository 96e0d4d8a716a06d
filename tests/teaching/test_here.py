"""Ranks as threads always come to an end: who waits in vain, who never ends, who cannot be stopped, each is named."""

import threading
import time

import torch

from lt_core.teaching.checks import here
from lt_core.teaching.checks.attempt import Job
from lt_core.teaching.checks.exercise import Case, Exercise
from lt_core.teaching.checks.tensors import integers

PLAIN = Exercise("00.plain", "fn(comm, x)", (), (), lambda fn, comm, x: fn(comm, x))


def run(fn, size=2, elements=4):
    return here.run(Job(PLAIN, fn, 7), Case(size, elements, integers))


def neighbour(comm, x):
    came = torch.empty_like(x)
    comm.exchange([(x, (comm.rank + 1) % comm.size)], [(came, (comm.rank - 1) % comm.size)])
    return came


def test_what_came_of_it_by_rank():
    found = run(neighbour, size=3)
    assert found.trouble() is None
    assert [torch.equal(v, found.given[(r - 1) % 3]) for r, v in enumerate(found.values())] == [True] * 3
    assert [(o.traffic.counted.messages, o.traffic.counted.bytes, o.changed) for o in found.outcomes] == [
        (1, 32, False)
    ] * 3
    assert found.outcomes[0].sent[0][:2] == (1, 4)


def test_ranks_are_handed_different_values_and_every_seed_others():
    given = [Case(3, 5, integers).given(seed) for seed in (1, 1, 2)]
    assert all(torch.equal(a, b) for a, b in zip(*given[:2], strict=True)) and not torch.equal(given[0][0], given[2][0])
    assert torch.stack(given[0]).unique().numel() == 15


def test_a_changed_input_is_noticed():
    assert [o.changed for o in run(lambda comm, x: x.mul_(1 + comm.rank)).outcomes] == [False, True]


def test_the_first_cause_is_named_and_not_its_consequence():
    def answer(comm, x):
        if comm.rank == 1:
            raise ValueError("boom-ü")
        return neighbour(comm, x)

    trouble = run(answer, size=3).trouble()
    assert (trouble.rank, trouble.kind, trouble.text, trouble.hang) == (1, "ValueError", "boom-ü", False)


def test_exit_is_a_trouble_as_well():
    assert run(lambda comm, x: exit(3)).trouble().kind == "SystemExit"


def test_a_deadlock_says_who_waits_for_whom(monkeypatch):
    monkeypatch.setattr(here, "WAIT_S", 0.2)
    trouble = run(lambda comm, x: comm.exchange([(x, 1 - comm.rank)], [])).trouble()
    assert (
        trouble.hang and "waits in exchange (to" in trouble.text and "comm.exchange(" in here.place.words(trouble.place)
    )


def test_what_never_ends_is_stopped_and_its_line_named(monkeypatch):
    monkeypatch.setattr(here, "WHOLE_S", 0.3)
    stopped = threading.Event()

    def answer(comm, x):
        try:
            while comm.rank == 1:
                x = x + 1
        finally:
            stopped.set()
        return x

    trouble = run(answer).trouble()
    assert (trouble.rank, trouble.hang, trouble.text) == (1, True, "it had not ended after 0.3 s") and stopped.is_set()
    assert trouble.place.file == __file__ and trouble.place.function == "answer"


def test_what_never_ends_comes_before_those_who_wait_for_it(monkeypatch):
    monkeypatch.setattr(here, "WHOLE_S", 0.5)
    monkeypatch.setattr(here, "WAIT_S", 0.2)

    def answer(comm, x):
        while comm.rank == 1:
            pass
        return neighbour(comm, x)

    assert run(answer).trouble().rank == 1


def test_what_cannot_be_stopped_is_left_alone_and_said(monkeypatch):
    monkeypatch.setattr(here, "WHOLE_S", 0.2)
    monkeypatch.setattr(here, "STOP_S", 0.2)
    go = threading.Event()
    begun_s = time.monotonic()
    trouble = run(lambda comm, x: go.wait(), size=1).trouble()
    went_s = time.monotonic() - begun_s
    go.set()
    assert "a thread is left over: restart the kernel" in trouble.text and went_s < 8
