"""Ranks as threads: right results, same bits on all ranks, every failure named, nothing left running."""

import threading
import time

import pytest
import torch

from lt_core.base.errors import Aborted, Deadline, Mismatch, Misuse, RankError, UserError
from lt_core.base.traffic import Traffic
from lt_core.comm import laws
from lt_core.comm.comm import Comm
from lt_core.comm.threads import run
from lt_core.comm.threads.hub import Begun, Hub


def cause(fn, size, *args, timeout_s=5.0):
    """The exception of the rank that failed first."""
    with pytest.raises(RankError) as caught:
        run(fn, size, args, timeout_s)
    return caught.value.__cause__


def values(comm, n, dtype=torch.float64):
    return (torch.arange(n) + 1000 * comm.rank + 1).to(dtype)


def test_results_come_by_rank():
    assert run(lambda comm, k: (comm.rank, comm.size, k), 3, (7,)) == [(0, 3, 7), (1, 3, 7), (2, 3, 7)]


def test_is_a_comm():
    assert run(lambda comm: isinstance(comm, Comm), 1) == [True]


@pytest.mark.parametrize("size", [0, -2])
def test_a_world_needs_ranks(size):
    with pytest.raises(UserError, match=rf"a world needs ranks; got {size}; expected at least 1"):
        run(lambda comm: None, size)


def test_exchange_around_a_ring():
    def fn(comm):
        x, y = values(comm, 3), torch.empty(3, dtype=torch.float64)
        comm.exchange([(x, (comm.rank + 1) % comm.size)], [(y, (comm.rank - 1) % comm.size)])
        return y[0].item(), comm.traffic.counted.bytes_to, comm.traffic.counted.messages

    assert run(fn, 3) == [(2001, {1: 24}, 1), (1, {2: 24}, 1), (1001, {0: 24}, 1)]


def test_messages_of_a_link_keep_their_order():
    def fn(comm):
        got = [torch.empty(1) for _ in range(5)]
        if comm.rank == 0:
            comm.exchange([(torch.full((1,), float(k)), 1) for k in range(3)], [])
            comm.exchange([(torch.full((1,), float(k)), 1) for k in range(3, 5)], [])
            return None
        works = [comm.start("exchange", [], [(g, 0)]) for g in got[:2]]
        comm.exchange([], [(g, 0) for g in got[2:]])
        for work in works:
            work.wait()
        return [g.item() for g in got]

    assert run(fn, 2)[1] == [0, 1, 2, 3, 4]


def test_a_send_is_over_when_it_was_taken():
    def fn(comm):
        x = torch.ones(1)
        if comm.rank == 0:
            comm.exchange([(x, 1)], [])
            return order.append("taken")
        order.append("before")
        comm.exchange([], [(x, 0)])

    order = []
    run(fn, 2)
    assert order == ["before", "taken"]


def test_two_threads_of_a_rank_send_and_receive_at_once():
    def fn(comm):
        peer, y = 1 - comm.rank, torch.empty(1)
        out = threading.Thread(target=lambda: comm.exchange([(values(comm, 1, torch.float32), peer)], []))
        out.start()
        comm.exchange([], [(y, peer)])
        out.join()
        return y.item()

    assert run(fn, 2) == [1001, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(), (0,), (1, 0, 2), (1,), (7,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bfloat16])
def test_all_reduce(size, shape, dtype):
    def fn(comm):
        x = (torch.arange(torch.Size(shape).numel()).reshape(shape) + comm.rank + 1).to(dtype)
        comm.all_reduce(x)
        return x

    total = sum(torch.arange(torch.Size(shape).numel()).reshape(shape) + r + 1 for r in range(size)).to(dtype)
    assert all(x.dtype == dtype and torch.equal(x, total) for x in run(fn, size))


def test_sums_run_in_rank_order_with_the_same_bits_everywhere():
    def fn(comm):
        x = torch.tensor([1e16, 1.0, -1e16][comm.rank]).double().reshape(1)
        comm.all_reduce(x)
        return x.item()

    assert run(fn, 3) == [(1e16 + 1.0) - 1e16] * 3


def test_reduce_scatter_gather_broadcast_all_to_all():
    def fn(comm):
        part, whole = torch.empty(2), torch.empty(6)
        comm.reduce_scatter(part, torch.arange(6.0) * (comm.rank + 1))
        comm.all_gather(whole, part)
        root = torch.full((2,), float(comm.rank))
        comm.broadcast(root, 2)
        swapped = torch.empty(3, 1)
        comm.all_to_all(swapped, torch.tensor([[10.0], [20.0], [30.0]]) + comm.rank)
        return part.tolist(), whole.tolist(), root.tolist(), swapped.flatten().tolist()

    whole = [0.0, 6, 12, 18, 24, 30]
    assert run(fn, 3) == [
        (whole[2 * r : 2 * r + 2], whole, [2, 2], [10 * (r + 1), 10 * (r + 1) + 1, 10 * (r + 1) + 2]) for r in range(3)
    ]


@pytest.mark.parametrize("size", [2, 4])
def test_tensors_without_elements_pass_every_verb(size):
    """A peer's processes died of a division by zero where a tensor had no elements."""

    def fn(comm):
        for shape in ((0,), (1, 0, 2)):
            x, whole = torch.ones(shape), torch.ones((shape[0] * comm.size, *shape[1:]))
            comm.broadcast(x, 0)
            comm.all_gather(whole, x)
            comm.reduce_scatter(x, whole)
            comm.all_to_all(whole, whole.clone())
            comm.exchange([(x, (comm.rank + 1) % comm.size)], [(torch.ones(shape), (comm.rank - 1) % comm.size)])
        return comm.traffic.messages

    assert run(fn, size) == [0] * size


def test_gather_into_the_tensor_it_comes_from():
    def fn(comm):
        flat = torch.zeros(4)
        flat[comm.rank * 2 : comm.rank * 2 + 2] = comm.rank + 1.0
        comm.all_gather(flat, flat[comm.rank * 2 : comm.rank * 2 + 2])
        return flat.tolist()

    assert run(fn, 2) == [[1, 1, 2, 2]] * 2


def test_all_to_all_with_counts():
    def fn(comm):
        counts = [[1, 2], [0, 3]][comm.rank]
        come = [[1, 0], [2, 3]][comm.rank]
        x = torch.arange(3).reshape(3, 1) + 10 * comm.rank
        out = torch.empty(sum(come), 1, dtype=torch.int64)
        comm.all_to_all(out, x, come, counts)
        return out.flatten().tolist(), comm.traffic.by_law.bytes_to

    assert run(fn, 2) == [([0], {1: 16}), ([1, 2, 10, 11, 12], {})]


def test_all_to_all_counts_must_agree():
    def fn(comm):
        comm.all_to_all(torch.empty(2), torch.empty(2), [2, 0] if comm.rank else [1, 1], [1, 1])

    assert "rank 1 expects 2 rows of rank 0; got 1 sent" in str(cause(fn, 2))


def test_parameters_and_inference_tensors_can_be_written():
    def fn(comm):
        parameter = torch.nn.Parameter(torch.ones(2))
        with torch.no_grad():
            comm.all_reduce(parameter)
        with torch.inference_mode():
            x = torch.ones(2)
            comm.all_reduce(x)
            comm.exchange([(torch.ones(2), 1 - comm.rank)], [(x, 1 - comm.rank)])
        (parameter * 2).sum().backward()
        return parameter.tolist(), x.tolist(), parameter.grad.tolist()

    assert run(fn, 2) == [([2, 2], [1, 1], [2, 2])] * 2


def test_started_verbs_keep_the_order_of_their_calls():
    def fn(comm):
        a, b = torch.ones(1), torch.ones(1) * (comm.rank + 1)
        first, second = comm.start("all_reduce", a), comm.start("all_reduce", b)
        comm.barrier()
        second.wait()
        first.wait()
        (start, end), (later, _) = first.span(), second.span()
        return a.item(), b.item(), start <= end, start <= later

    assert run(fn, 2) == [(2, 3, True, True)] * 2


def test_start_knows_its_verbs():
    assert str(cause(lambda comm: comm.start("reduce", 1), 1)).startswith(
        "'reduce' cannot be started; expected exchange,"
    )
    said = str(cause(lambda comm: comm.start(torch.ones(2)), 1))
    assert said.startswith("tensor([1., 1.]) cannot be started") and said.endswith('start("all_reduce", x)')


def test_subsets_count_from_zero_and_refuse_others():
    def fn(comm):
        group = comm.subset([3, 1])
        x = torch.tensor([comm.rank])
        if comm.rank in (1, 3):
            group.broadcast(x, 0)
            return group.rank, x.item(), group.traffic.by_law.bytes, comm.traffic.bytes
        with pytest.raises(UserError, match=rf"broadcast: rank {comm.rank} is no member of the group \[3, 1\]"):
            group.broadcast(x, 0)
        return group.rank, group.size

    assert run(fn, 4) == [(-1, 2), (1, 3, 0, 0), (-1, 2), (0, 3, 8, 0)]


OUTSIDE = {
    "exchange": lambda c, x: c.exchange([(x, 0)], []),
    "barrier": lambda c, x: c.barrier(),
    "all_reduce": lambda c, x: c.all_reduce(x),
    "reduce_scatter": lambda c, x: c.reduce_scatter(x, x),
    "all_gather": lambda c, x: c.all_gather(x, x),
    "broadcast": lambda c, x: c.broadcast(x, 0),
    "all_to_all": lambda c, x: c.all_to_all(x, x),
    "subset": lambda c, x: c.subset([0]),
    "all_reduce ": lambda c, x: c.start("all_reduce", x),
}


def test_no_verb_of_a_group_works_from_outside():
    """A rank outside a group called it, nothing happened, and nobody was told."""

    def fn(comm):
        group = comm.subset([0])
        for verb, call in OUTSIDE.items() if comm.rank else ():
            with pytest.raises(UserError, match=rf"{verb.strip()}: rank 1 is no member of the group \[0\]"):
                call(group, torch.ones(1))
        return group.rank

    assert run(fn, 2) == [0, -1]


@pytest.mark.parametrize("ranks", [[], [0, 0], [0, 2], [-1]])
def test_subsets_that_make_no_group(ranks):
    assert f"these ranks make no group; got {ranks}" in str(cause(lambda comm: comm.subset(ranks), 2))


def test_subsets_in_another_order_on_two_ranks():
    error = cause(lambda comm: comm.subset([comm.rank]), 2)
    assert isinstance(error, Mismatch) and "rank 0 called subset [0], rank 1 called subset [1]" in str(error)


def test_traffic_is_the_rings_law():
    def fn(comm):
        x, y = torch.ones(12), torch.ones(4)
        for call in (
            lambda: comm.all_reduce(x), lambda: comm.reduce_scatter(y, x), lambda: comm.all_gather(x, y),
            lambda: comm.broadcast(x, 1), lambda: comm.all_to_all(x, x.clone()), lambda: comm.barrier(),
        ):  # fmt: skip
            before = comm.traffic.copy()
            call()
            sent = comm.traffic - before
            seen.setdefault(comm.rank, []).append((sent.by_law.bytes, sent.by_law.messages))
        return comm.traffic.counted == Traffic().counted

    seen = {}
    assert run(fn, 3) == [True] * 3
    for rank in range(3):
        passed_on = (0, 0) if rank == 0 else (48, 1)
        assert seen[rank] == [(64, 4), (32, 2), (32, 2), passed_on, (32, 2), (0, 0)]
    assert laws.all_reduce_bytes(48, 3) == laws.reduce_scatter_bytes(48, 3) + laws.all_gather_bytes(48, 3) == 64


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (
            lambda c: c.all_reduce(torch.ones(2, 2)[:, 0]),
            Misuse,
            r"all_reduce: the tensor is strided; got shape \(2,\)",
        ),
        (lambda c: c.broadcast(torch.arange(6).view(2, 3).t(), 0), Misuse, "broadcast: the tensor is strided"),
        (lambda c: c.reduce_scatter(torch.ones(2), torch.ones(2, 2).t()), Misuse, "reduce_scatter: the tensor is str"),
        (
            lambda c: c.reduce_scatter(torch.ones(2, 2)[:, 0], torch.ones(4)),
            Misuse,
            "reduce_scatter: the tensor is str",
        ),
        (lambda c: c.all_gather(torch.ones(2, 2).t(), torch.ones(2)), Misuse, "all_gather: the tensor is strided"),
        (lambda c: c.all_gather(torch.ones(4), torch.ones(2, 2)[:, 0]), Misuse, "all_gather: the tensor is strided"),
        (lambda c: c.all_to_all(torch.ones(2, 2).t(), torch.ones(2, 2)), Misuse, "all_to_all: the tensor is strided"),
        (lambda c: c.start("all_reduce", torch.ones(2, 2)[:, 0]), Misuse, "all_reduce: the tensor is strided"),
        (lambda c: c.exchange([(torch.ones(2, 2)[:, 0], 1 - c.rank)], []), Misuse, "exchange: the tensor is strided"),
        (lambda c: c.all_reduce(torch.ones(2, dtype=torch.int16)), UserError, "got torch.int16; expected float32,"),
        (lambda c: c.all_reduce(torch.ones(2, dtype=torch.bool)), UserError, "got torch.bool"),
        (lambda c: c.all_reduce(torch.ones(2, device="meta")), UserError, "elsewhere; got meta; expected cpu"),
        (lambda c: c.all_reduce([1.0]), UserError, "all_reduce takes tensors; got list"),
        (lambda c: c.broadcast(torch.ones(2), 2), UserError, "there is no rank 2; got 2; expected 0 to 1"),
        (lambda c: c.exchange([(torch.ones(1), 2)], []), UserError, "exchange: there is no rank 2"),
        (lambda c: c.exchange([], [(torch.ones(1), c.rank)]), UserError, "would talk to itself"),
        (
            lambda c: c.exchange([], (torch.ones(6), 0)),
            UserError,
            "receives is no list of pairs; got tuple of Tensor, int",
        ),
        (
            lambda c: c.exchange((torch.ones(2), 1), []),
            UserError,
            "exchange: sends is no list of pairs; got tuple of Ten",
        ),
        (
            lambda c: c.exchange(torch.ones(2, 3), []),
            UserError,
            r"got Tensor; expected \[\(tensor, rank\), ...\]; for n",
        ),
        (
            lambda c: c.exchange([torch.ones(6)], []),
            UserError,
            "exchange: sends is no list of pairs; got list of Tensor;",
        ),
        (lambda c: c.exchange([], None), UserError, "exchange: receives is no list of pairs; got NoneType; expected"),
        (lambda c: c.exchange([], [(3, 1 - c.rank)]), UserError, "exchange takes tensors; got int"),
        (lambda c: c.reduce_scatter(torch.ones(2), torch.ones(3)), UserError, "do not fit 2 ranks; got out 2, x 3"),
        (lambda c: c.all_gather(torch.ones(3), torch.ones(2)), UserError, "do not fit 2 ranks; got out 3, x 2"),
        (lambda c: c.all_gather(torch.ones(4).int(), torch.ones(2)), UserError, "two dtypes; got out torch.int32"),
        (lambda c: c.all_to_all(torch.ones(3), torch.ones(3)), UserError, "out has no 2 equal parts"),
        (lambda c: c.all_to_all(torch.ones(3), torch.ones(3), [1, 2], [1, 1]), UserError, r"got \[1, 1\] of 3 rows"),
    ],
)
def test_bad_input_is_refused_before_anything_moves(call, kind, text):
    def fn(comm):
        with pytest.raises(kind, match=text):
            call(comm)
        comm.barrier()
        return comm.traffic.bytes

    assert run(fn, 2) == [0, 0]


def test_a_buffer_cannot_be_sent_and_received_at_once():
    def fn(comm):
        x = torch.ones(4)
        comm.exchange([(x[:3], 1 - comm.rank)], [(x[2:], 1 - comm.rank)])

    assert "is sent as well" in str(cause(fn, 2))


def test_a_message_that_does_not_fit_is_named_on_both_ranks():
    def fn(comm):
        with pytest.raises(
            Mismatch, match=r"rank 0 sends rank 1 what does not fit.*got 3 torch.float32 sent, room for 2"
        ):
            comm.exchange([(torch.ones(3), 1)], []) if comm.rank == 0 else comm.exchange([], [(torch.ones(2), 0)])
        return True

    assert run(fn, 2) == [True, True]


def test_different_collectives_are_named_on_all_ranks():
    def fn(comm):
        x = torch.ones(4)
        comm.barrier()
        with pytest.raises(
            Mismatch, match=r"rank 0 called all_reduce of \(4,\) float32, rank 2 called broadcast of .* 1 "
        ):
            comm.all_reduce(x) if comm.rank < 2 else comm.broadcast(x, 0)
        return True

    assert run(fn, 3) == [True] * 3


def test_the_first_failure_frees_the_others():
    def fn(comm):
        if comm.rank == 2:
            raise KeyError("the reason")
        try:
            comm.barrier()
        except Aborted as error:
            freed.append(str(error))
            raise

    freed = []
    started = time.perf_counter()
    with pytest.raises(RankError, match=r"rank 2 failed first: KeyError: 'the reason'(?s:.*)line \d+, in fn") as caught:
        run(fn, 4, timeout_s=15)
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.rank == 2
    assert freed == ["rank 2 failed: KeyError: 'the reason'"] * 3
    assert time.perf_counter() - started < 10  # far below the deadline: they were freed, not timed out


def test_who_was_only_told_of_a_failure_is_not_the_culprit_though_it_raised_first():
    """As with a referee: it frees the others before the culprit's own error is out."""
    told = threading.Event()

    def fn(comm):
        if comm.rank == 0:
            try:
                raise Aborted("rank 1 failed first")
            finally:
                told.set()
        assert told.wait(5)
        with pytest.raises(Aborted):  # rank 0 is over
            comm.barrier()
        raise KeyError("the reason")

    assert isinstance(cause(fn, 2), KeyError)


def test_a_failure_frees_those_who_wait_in_a_subset():
    def fn(comm):
        group = comm.subset([0, 1])
        if comm.rank == 2:
            raise KeyError("outside")
        group.barrier() if comm.rank == 0 else group.exchange([], [(torch.ones(1), 0)])

    assert isinstance(cause(fn, 3, timeout_s=15), KeyError)


def test_a_deadline_says_who_waits_for_whom():
    def fn(comm):
        if comm.rank:
            comm.exchange([], [(torch.ones(1), 3 - comm.rank)])
        hub = comm._meeting.hub
        while len(hub._waiting) < 2:
            assert not hub.ended
        hub.timeout_s = 0.1  # the others' waits have begun, and may last longer
        comm.exchange([(torch.ones(1), 1)], [])

    error = cause(fn, 3, timeout_s=20)
    assert isinstance(error, Deadline)
    assert str(error) == (
        "rank 0 waits in exchange (to 1) for rank 1, longer than 0.1 s; rank 1 waits in exchange (from 2) for rank 2"
    )


def test_who_waits_for_a_rank_that_has_returned_is_told_at_once():
    def fn(comm):
        if comm.rank != 1:
            comm.barrier()

    error = cause(fn, 3, timeout_s=15)
    assert isinstance(error, Mismatch)
    assert str(error).startswith("rank ") and "waits in barrier for rank" in str(error)
    assert "; rank 1 has returned; try: make the same calls on every rank" in str(error)


@pytest.mark.parametrize(
    ("leavers", "said"),
    [
        ([2], "for ranks 1, 2; rank 2 has returned"),
        ([1, 2], "for ranks 1, 2; ranks 1, 2 have returned"),
    ],
)
def test_only_those_who_have_returned_are_said_to_have(leavers, said):
    hub = Hub(3, 5)
    begun = Begun(hub, 0, [1, 2], 1, lambda: "barrier")
    for rank in leavers:
        hub.leave(rank)
    with pytest.raises(Mismatch) as caught:
        begun.wait()
    assert str(caught.value) == f"rank 0 waits in barrier {said}; try: make the same calls on every rank"


@pytest.mark.parametrize("stop", [RuntimeError("can't start new thread"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_a_rank_that_cannot_be_started_frees_the_others(monkeypatch, stop):
    """They waited for it until their deadline, behind the back of who had called `run`."""
    start, before = threading.Thread.start, set(threading.enumerate())

    def fails(thread):
        if thread.name == "rank 2":
            raise stop
        start(thread)

    def waits(comm):
        with pytest.raises(Aborted, match=f"stopped: {type(stop).__name__}"):
            comm.barrier()
        freed.append(comm.rank)

    freed = []
    monkeypatch.setattr(threading.Thread, "start", fails)
    with pytest.raises(type(stop)):
        run(waits, 4, (), 30)
    assert set(threading.enumerate()) == before and sorted(freed) == [0, 1]


def test_what_was_begun_before_a_rank_returned_still_arrives():
    def fn(comm):
        x = torch.full((1,), float(comm.rank))
        if comm.rank == 0:
            comm.start("exchange", [(x, 1)], [])
            gone.set()
            return None
        gone.wait(5)
        comm.exchange([], [(x, 0)])
        return x.item()

    gone = threading.Event()
    assert run(fn, 2)[1] == 0


def test_abort_ends_the_communicator():
    def fn(comm):
        if comm.rank == 0:
            comm.abort("enough")
        with pytest.raises(Aborted, match="enough"):
            comm.barrier()
        with pytest.raises(Aborted, match="enough"):
            comm.exchange([(torch.ones(1), 1 - comm.rank)], [])
        return comm.ended

    assert run(fn, 2) == ["enough"] * 2


def test_nothing_is_left_running():
    before = set(threading.enumerate())
    run(lambda comm: comm.barrier(), 8)
    cause(lambda comm: 1 / comm.rank, 3)
    assert set(threading.enumerate()) == before
