"""Shaped wires: nothing arrives before the law allows it, ports serve one message at a time, and callers do not wait.

Lower bounds and orders only: how much slower than its law a run is belongs to a benchmark.
"""

import contextlib
import threading
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

from lt_core.base.cluster import OFFICE, Wire
from lt_core.base.errors import Aborted, Deadline, RankError, UserError
from lt_core.comm import laws
from lt_core.comm.shaped import shaped
from lt_core.comm.shaped.ports import Coming, Port, Ports, Time
from lt_core.comm.shaped.shape import Shape
from lt_core.comm.shaped.travelling import Travelling

SLOW = Wire("slow", 5e-3, 1e6)  # a kilobyte takes a millisecond
KB = 1000


def on_wire(group, fn, wire=SLOW, **shape):
    """`fn` on ranks whose wires are shaped."""
    return group.run(lambda comm: fn(shaped(comm, wire, **shape)))


def lasts(time_on_wire, seconds):
    """Whether a span is no shorter than the law; sums of clocks are exact to a nanosecond."""
    start_s, end_s = time_on_wire
    return end_s - start_s >= seconds - 1e-9


def took_s(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def nbytes(n):
    return torch.zeros(n, dtype=torch.uint8)


# What is computed


def test_a_port_serves_one_message_at_a_time_and_uses_its_gaps():
    port = Port()
    taken = [port.take(at, length) for at, length in [(0, 2), (1, 2), (10, 1), (3, 5), (4, 2)]]
    assert taken == [(0, 2), (2, 4), (10, 11), (4, 9), (11, 13)]
    assert port.take(9, 1) == (9, 10)
    assert port.end_s() == 13


def test_what_comes_is_taken_in_the_order_in_which_it_left():
    ports = Ports(Shape(SLOW, {}, 0, {}, 0))
    assert ports.land(1, [Coming(3, 0, 2), Coming(0, 2, 1), Coming(2.5, 1, 4)]) == [(1, 2), (2.5, 6.5), (6.5, 8.5)]


def test_a_collective_takes_both_ports():
    ports = Ports(Shape(SLOW, {}, 0, {}, 0))
    ports.leave(0, 5)
    assert ports.meet(2, 1) == Time(5, 6)
    assert ports.land(0, [Coming(5.5, 1, 1)]) == [(6, 7)]


def test_links_stragglers_and_the_ring_of_a_shape():
    shape = Shape(SLOW, {(0, 1): Wire("slower", 0.1, 1e5)}, 0, {2: 3.0}, 0)
    assert shape.seconds(1, 0, KB) == pytest.approx(0.006)
    assert shape.seconds(0, 1, KB) == pytest.approx(0.11)
    assert shape.seconds(1, 2, KB) == shape.seconds(2, 1, KB) == pytest.approx(0.018)
    assert shape.ring_seconds("all_reduce", 3 * KB, [0, 1, 2], 1) == pytest.approx(4 * 0.11)
    assert shape.ring_seconds("all_gather", 2 * KB, [2, 1], 1) == pytest.approx(0.018)
    assert shape.ring_seconds("broadcast", KB, [3, 4, 5], 1) == pytest.approx(0.005 + 0.006)


def test_jitter_comes_from_the_seed_and_is_the_same_at_both_ends():
    shape, again, other = (Shape(SLOW, {}, 0.5, {}, seed) for seed in (1, 1, 2))
    drawn = [shape.jitter((0, 1), k) for k in range(50)]
    assert drawn == [again.jitter((0, 1), k) for k in range(50)]
    assert drawn != [other.jitter((0, 1), k) for k in range(50)] and len(set(drawn)) == 50
    assert 0 <= min(drawn) < 0.1 and 0.4 < max(drawn) <= 0.5


class Woken(NamedTuple):
    """A Work that was over at `end_s`, and whose waiter is woken some time after that."""

    end_s: float

    def wait(self):
        threading.Event().wait(5e-3)

    def span(self):
        return 0.0, self.end_s


@pytest.mark.parametrize(("real_end_s", "end_s"), [(1.0, 2.0), (3.0, 3.0)])
def test_who_is_woken_late_was_not_held_up_by_the_wire(real_end_s, end_s):
    """When the message beneath was over is known, whoever learned of it when."""
    way = Travelling(SimpleNamespace(timeout_s=1.0), "all_reduce", [Woken(real_end_s)], lambda: Time(0.5, 2.0), None)
    way.wait()
    assert way.span() == (0.5, end_s)


def test_the_ring_of_a_law():
    assert laws.seconds("all_reduce", 4 * KB, 4, SLOW.seconds) == pytest.approx(6 * 0.006)
    assert laws.seconds("reduce_scatter", 4 * KB, 4, SLOW.seconds) == pytest.approx(3 * 0.006)
    assert laws.seconds("broadcast", 4 * KB, 4, SLOW.seconds) == pytest.approx(2 * 0.005 + 0.009)
    assert laws.seconds("all_gather", KB, 1, SLOW.seconds) == laws.seconds("all_reduce", 0, 4, SLOW.seconds) == 0


# What is measured


def test_a_message_takes_its_law_and_its_stamp_costs_nothing(ranks):
    def fn(comm):
        before, x = comm.traffic.copy(), torch.full((20 * KB,), comm.rank, dtype=torch.uint8)
        y = torch.empty_like(x)
        seconds = took_s(lambda: comm.exchange([(x, 1 - comm.rank)], [(y, 1 - comm.rank)]))
        return seconds >= SLOW.seconds(x.nbytes), y.unique().tolist(), (comm.traffic - before).counted

    for rank, (slow, got, counted) in enumerate(on_wire(ranks(2), fn)):
        assert slow and got == [1 - rank]
        assert (counted.bytes_to, counted.messages_to) == ({1 - rank: 20 * KB}, {1 - rank: 1})


def test_time_passes_in_the_work_and_not_in_the_caller(ranks):
    def fn(comm):
        work = comm.start("exchange", [(nbytes(50 * KB), 1 - comm.rank)], [(nbytes(50 * KB), 1 - comm.rank)])
        begun = time.perf_counter()
        work.wait()
        end_s = work.span()[1]
        return lasts(work.span(), SLOW.seconds(50 * KB)), end_s >= begun, time.perf_counter() >= end_s

    assert on_wire(ranks(2), fn) == [(True, True, True)] * 2


def test_who_receives_from_many_takes_one_after_the_other(ranks):
    """Rank 0 is the queue: three messages that left together end one, two and three times later."""

    def fn(comm):
        if comm.rank:
            return comm.exchange([(nbytes(20 * KB), 0)], [])
        works = [comm.start("exchange", [], [(nbytes(20 * KB), peer)]) for peer in (3, 1, 2)]
        for work in works:
            work.wait()
        return sorted(work.span() for work in works)

    spans = on_wire(ranks(4), fn)[0]
    assert all(lasts((earlier, later), SLOW.seconds(20 * KB)) for (earlier, _), (later, _) in pairwise(spans))
    assert all(lasts(span, SLOW.seconds(20 * KB)) for span in spans)


def test_who_sends_to_many_sends_one_after_the_other_and_receives_meanwhile(ranks):
    def fn(comm):
        others = [r for r in range(comm.size) if r != comm.rank]
        sends, receives = ([(nbytes(20 * KB), r) for r in others] for _ in range(2))
        both = took_s(lambda: comm.exchange(sends, receives))
        out = comm.start("exchange", sends, [])
        into = comm.start("exchange", [], receives)
        for work in (out, into):
            work.wait()
        return both >= 2 * SLOW.seconds(20 * KB), out.span()[0] < into.span()[1], into.span()[0] < out.span()[1]

    assert on_wire(ranks(3), fn) == [(True, True, True)] * 3


def test_the_latency_of_a_link_and_a_straggler(ranks):
    def fn(comm):
        def one(peer):
            return lambda: (
                comm.exchange([], [(nbytes(1), peer)]) if comm.rank == 0 else comm.exchange([(nbytes(1), 0)], [])
            )

        seconds = []
        for peer in (1, 2, 3):
            comm.barrier()
            seconds.append(took_s(one(peer)) if comm.rank in (0, peer) else 0)
        return seconds

    usual, far, slow = on_wire(ranks(4), fn, links={(2, 0): Wire("far", 0.2, 1e9)}, straggler={3: 20.0})[0]
    assert usual >= 0.005 and far >= 0.2 and slow >= 0.1


def test_jitter_makes_messages_later_never_earlier(ranks):
    def fn(comm):
        spans = []
        for _ in range(5):
            work = comm.start("exchange", [(nbytes(KB), 1 - comm.rank)], [(nbytes(KB), 1 - comm.rank)])
            work.wait()
            spans.append(work.span())
        return all(lasts(span, SLOW.seconds(KB)) for span in spans)

    assert on_wire(ranks(2), fn, jitter_s=0.01) == [True, True]


@pytest.mark.parametrize("verb", ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"])
def test_the_backends_own_collectives_take_the_rings_law_from_when_the_last_rank_came(ranks, verb):
    def fn(comm):
        before = comm.traffic.copy()
        x, part = torch.ones(8 * KB), torch.ones(2 * KB)
        args = {"all_reduce": (x,), "reduce_scatter": (part, x), "all_gather": (x, part), "broadcast": (x, 3)}
        if comm.rank == 2:
            torch.ones(2000, 2000).cumsum(0)  # something else to do first
        begun = time.perf_counter()
        getattr(comm, verb)(*args.get(verb, (x, x.clone())))
        return begun, time.perf_counter(), (comm.traffic - before).by_law.bytes

    law_s = laws.seconds(verb, 32 * KB, 4, SLOW.seconds) if verb != "all_to_all" else 3 * SLOW.seconds(8 * KB)
    results = on_wire(ranks(4), fn)
    last = max(begun for begun, *_ in results)
    assert all(end - last >= law_s for _, end, _ in results)
    expected = laws.sent(verb, 32 * KB, 4, 0, 3).nbytes if verb != "all_to_all" else 24 * KB
    assert results[0][2] == expected


def test_naive_and_ring_all_reduce_over_the_office(ranks):
    """All to rank 0 and back, against chunks around a ring: each no faster than its own law, and right."""

    def naive(comm, x):
        others, parts = range(1, comm.size), [torch.empty_like(x) for _ in range(1, comm.size)]
        if comm.rank:
            comm.exchange([(x, 0)], [])
            return comm.exchange([], [(x, 0)])
        comm.exchange([], list(zip(parts, others)))
        for part in parts:
            x += part
        return comm.exchange([(x, r) for r in others], [])

    def ring(comm, x):
        chunks, right, left = list(x.chunk(comm.size)), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        for k in range(2 * (comm.size - 1)):
            sent, taken = chunks[(comm.rank - k) % comm.size], chunks[(comm.rank - k - 1) % comm.size]
            buffer = torch.empty_like(taken)
            comm.exchange([(sent, right)], [(buffer, left)])
            taken.copy_(taken + buffer if k < comm.size - 1 else buffer)

    def fn(comm):
        seconds = []
        for way in (naive, ring):
            x = torch.arange(2**18, dtype=torch.float32) % 100 + comm.rank
            comm.barrier()
            seconds.append(took_s(lambda way=way, x=x: way(comm, x)))
            assert torch.equal(x, torch.arange(2**18, dtype=torch.float32) % 100 * 4 + 6)
        return seconds

    n = 4 * 2**18
    naive_s, ring_s = (max(seconds) for seconds in zip(*on_wire(ranks(4), fn, wire=OFFICE)))
    assert naive_s >= 6 * OFFICE.seconds(n) and ring_s >= 6 * OFFICE.seconds(n // 4)


def test_a_group_of_some_ranks_has_the_same_wires_and_ports(ranks):
    def fn(comm):
        group = comm.subset([2, 0])
        if comm.rank == 1:
            return group.rank
        works = []
        for c, peer in ((group, 1 - group.rank), (comm, 2 - comm.rank)):
            message = [(nbytes(20 * KB), peer)]
            works.append(c.start("exchange", *((message, []) if comm.rank == 0 else ([], message))))
        for work in works:
            work.wait()
        (first, _), (second, _) = (work.span() for work in works)
        return lasts((first, second), far.seconds(20 * KB))

    far = Wire("far", 0.1, 1e6)
    assert on_wire(ranks(3), fn, links={(0, 2): far}) == [True, -1, True]


# What goes wrong


@pytest.mark.parametrize(
    "shape, text",
    [
        ({"links": {(0, 2): SLOW}}, "a wire is shaped for rank 2; got 2; expected 0 to 1"),
        ({"straggler": {-1: 2.0}}, "a wire is shaped for rank -1; got -1; expected 0 to 1"),
        ({"straggler": {1: 0.5}}, "a straggler is not faster than others; got 0.5; expected a factor of at least 1"),
        ({"jitter_s": -1.0}, "jitter cannot make a message faster; got -1.0; expected at least 0 s"),
    ],
)
def test_shapes_that_are_none(ranks, shape, text):
    with pytest.raises(RankError) as caught:
        on_wire(ranks(2), lambda comm: None, **shape)
    assert isinstance(caught.value.__cause__, UserError) and str(caught.value.__cause__) == text


def test_a_message_that_takes_longer_than_a_wait_may_last_is_refused_at_once(ranks):
    def fn(comm):
        with pytest.raises(
            Deadline, match=r"exchange \(to ., from .\) takes 1000 s more on its shaped wire, longer"
        ) as late:
            comm.exchange([(nbytes(1000 * KB), 1 - comm.rank)], [(nbytes(1000 * KB), 1 - comm.rank)])
        return str(late.value).startswith(f"rank {comm.rank}: ")

    assert on_wire(ranks(2), fn, wire=Wire("thread", 0, 1000)) == [True, True]


def test_abort_frees_who_waits_for_the_wire(ranks):
    def fn(comm):
        def wait():
            with pytest.raises(Aborted) as caught:
                work.wait()
            reasons.append(str(caught.value))

        work, reasons = comm.start("exchange", *([(nbytes(1), 1 - comm.rank)] for _ in range(2))), []
        waiter = threading.Thread(target=wait)
        waiter.start()
        with contextlib.suppress(Aborted):  # the other may abort it before we are out
            comm.barrier()
        begun = time.perf_counter()
        comm.abort("enough")
        waiter.join()
        return reasons, time.perf_counter() - begun < 8

    assert on_wire(ranks(2), fn, wire=Wire("far", 8.0, 1e9)) == [(["enough"], True)] * 2
