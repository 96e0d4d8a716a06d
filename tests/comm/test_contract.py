"""The contract: what gloo forgives and NCCL does not is named on every rank, and right programs see nothing of it."""

import gc
import tempfile
import threading
import time

import pytest
import torch

from lt_core.base.errors import Aborted, Deadline, Mismatch, Misuse, RankError, UserError
from lt_core.comm import host
from lt_core.comm.contract import contract, share
from lt_core.comm.contract.pages import CALLS, SIZES
from lt_core.comm.threads import run

MANY = max(CALLS, SIZES) + 9  # calls, of which a page has not all records


def on_threads(fn, size):
    """`fn` on threads whose communicator is under contract: for what shares objects with its ranks."""
    return run(lambda comm: fn(contract(comm)), size, (), 10)


def fault(kind, call):
    """The text of the fault that `call` raises."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def ends(comm):
    """The ranks to the right and to the left."""
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


@pytest.mark.parametrize("size", [1, 2, 4])
def test_right_programs_see_nothing_of_it(ranks, size):
    def fn(comm):
        x, y, whole = torch.full((3,), comm.rank + 1.0), torch.empty(3), torch.empty(3 * comm.size)
        right, left = ends(comm)
        if comm.size > 1:
            for _ in range(MANY):
                comm.exchange([(x, right)], [(y, left)])
        for _ in range(MANY):
            comm.barrier()
        works = [comm.start("all_gather", torch.empty_like(whole), x) for _ in range(MANY)]
        for work in works:
            work.wait()
        comm.all_gather(whole, x)
        comm.all_reduce(x)
        comm.broadcast(y, 0)
        comm.reduce_scatter(y, whole)
        comm.all_to_all(whole, whole.clone())
        comm.close()
        return x.tolist(), y.tolist(), whole.tolist()

    assert ranks(size).run(fn) == run(lambda comm: fn(Plain(comm)), size)


def test_its_pages_have_no_name_once_all_have_mapped_them(tmp_path, monkeypatch):
    def fn(comm):
        comm.barrier()
        return list(tmp_path.iterdir())

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert on_threads(fn, 3) == [[]] * 3


def test_its_pages_lie_in_the_launchs_folder_which_is_swept(tmp_path, monkeypatch):
    """A rank that was killed while they had a name left them in the temporary folder for good."""

    def killed(path, nbytes):
        made.append(path)
        raise KeyboardInterrupt

    made = []
    monkeypatch.setenv(host.MARK, str(tmp_path))
    monkeypatch.setattr(share, "_mapped", killed)
    with pytest.raises(RankError, match="KeyboardInterrupt"):
        on_threads(lambda comm: None, 1)
    assert [path.parents[1] for path in made] == [tmp_path] and list(tmp_path.iterdir()) == []


class Plain:
    """The communicator itself, with a `close`."""

    def __init__(self, comm):
        self._comm = comm

    def __getattr__(self, name):
        return getattr(self._comm, name)

    def close(self):
        pass


def test_traffic_is_the_communicators_own(ranks):
    def fn(comm):
        again, before = contract(comm), comm.traffic.copy()
        again.exchange([(torch.ones(2), 1 - comm.rank)], [(torch.ones(2), 1 - comm.rank)])
        again.all_reduce(torch.ones(4))
        sent = comm.traffic - before
        return again.traffic is comm.traffic, sent.counted.bytes, sent.by_law.bytes

    assert ranks(2).run(fn) == [(True, 8, 16)] * 2


def test_a_group_of_some_ranks_is_under_contract_too(ranks):
    def fn(comm):
        group = comm.subset([3, 1])
        if comm.rank not in (1, 3):
            return fault(UserError, group.barrier)
        return fault(Mismatch, lambda: group.barrier() if comm.rank == 1 else group.all_reduce(torch.ones(1)))

    outside, named, other, also = ranks(4).run(fn)
    assert (
        outside == "barrier: rank 0 is no member of the group [3, 1]; try: ask `comm.rank >= 0` before using a subset"
    )
    assert other == outside.replace("rank 0 is", "rank 2 is")
    assert named == also
    assert "rank 0 calls all_reduce of (1,) float32, rank 1 calls barrier" in named


def test_a_group_that_one_of_its_ranks_ended_can_be_made_again(ranks):
    def fn(comm):
        group = comm.subset([1, 0])
        if comm.rank == 0:
            group.abort("enough")
        comm.barrier()
        x = torch.ones(1)
        comm.subset([1, 0]).all_reduce(x)
        return x.item()

    assert ranks(2).run(fn) == [2, 2]


CALLS = {
    "verb": (lambda c, x: c.all_reduce(x), lambda c, x: c.broadcast(x, 0)),
    "shape": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(x[:2])),
    "dtype": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(x.double())),
    "root": (lambda c, x: c.broadcast(x, 0), lambda c, x: c.broadcast(x, 1)),
    "group": (lambda c, x: c.subset([0, 1]), lambda c, x: c.subset([1, 0])),
    "started": (lambda c, x: c.start("all_reduce", x).wait(), lambda c, x: c.start("all_reduce", x[:2]).wait()),
    "started and not": (lambda c, x: c.start("all_reduce", x).wait(), lambda c, x: c.barrier()),
}
NAMED = {
    "verb": ("all_reduce of (4,) float32", "broadcast of (4,) float32 from rank 0"),
    "shape": ("all_reduce of (4,) float32", "all_reduce of (2,) float32"),
    "dtype": ("all_reduce of (4,) float32", "all_reduce of (4,) float64"),
    "root": ("broadcast of (4,) float32 from rank 0", "broadcast of (4,) float32 from rank 1"),
    "group": ("subset [0, 1]", "subset [1, 0]"),
    "started": ("all_reduce of (4,) float32", "all_reduce of (2,) float32"),
    "started and not": ("all_reduce of (4,) float32", "barrier"),
}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("odd", [0, 1, 2])
def test_different_collectives_are_named_on_every_rank(ranks, kind, odd):
    """pytorch#75755: groups that ranks made in different orders were mixed up without a word, or hung."""

    def fn(comm):
        comm.barrier()
        ours, other = CALLS[kind]
        return fault(Mismatch, lambda: (other if comm.rank == odd else ours)(comm, torch.ones(4)))

    texts = ranks(3).run(fn)
    assert len(set(texts)) == 1
    usual, odd_one = NAMED[kind]
    assert texts[0].startswith("collective 2 of this group: rank ")
    assert f"rank {odd} calls {odd_one}" in texts[0] and f"calls {usual}" in texts[0]
    assert texts[0].endswith("; try: make the same calls in the same order on every rank")


def test_two_collectives_in_opposite_order(ranks):
    def fn(comm):
        a, b = torch.ones(1), torch.ones(2)
        order = (a, b) if comm.rank else (b, a)
        return fault(Mismatch, lambda: [comm.all_reduce(x) for x in order])

    first, second = ranks(2).run(fn)
    assert first == second
    assert "rank 0 calls all_reduce of (2,) float32, rank 1 calls all_reduce of (1,) float32" in first


def test_a_long_call_that_differs_at_its_end(ranks):
    shape = (1,) * 200

    def fn(comm):
        return fault(Mismatch, lambda: comm.all_reduce(torch.ones((*shape, comm.rank + 1))))

    assert len(set(ranks(2).run(fn))) == 1


def test_crossed_sends(ranks):
    def fn(comm):
        x, peer = torch.ones(1), 1 - comm.rank

        def crossed():
            comm.exchange([(x, peer)], [])
            comm.exchange([], [(torch.empty(1), peer)])

        return fault(Misuse, crossed)

    text = "rank 0 sends to rank 1, which itself waits to send to rank 0; try: put both in one exchange"
    assert ranks(2).run(fn) == [text] * 2


def test_a_circle_of_sends(ranks):
    def fn(comm):
        right, left = ends(comm)
        return fault(
            Misuse, lambda: [comm.exchange([(torch.ones(1), right)], []), comm.exchange([], [(torch.ones(1), left)])]
        )

    text = "rank 0 sends to rank 1, which itself waits to send to rank 2, which itself waits to send to rank 0"
    assert ranks(3).run(fn) == [f"{text}; try: put both in one exchange"] * 3


def test_crossed_sends_of_ranks_with_two_threads_each_are_right():
    def fn(comm):
        x, y, peer = torch.full((1,), float(comm.rank)), torch.empty(1), 1 - comm.rank
        out = threading.Thread(target=comm.exchange, args=([(x, peer)], []))
        out.start()
        crossed.wait(5)  # both send before anyone wants
        comm.exchange([], [(y, peer)])
        out.join()
        return y.item()

    crossed = threading.Barrier(2)
    assert on_threads(fn, 2) == [1, 0]


def test_crossed_sends_of_ranks_with_two_threads_each_are_named_when_time_is_up(ranks):
    def fn(comm):
        comm = contract(comm, timeout_s=0.3)
        second = threading.Thread(target=comm.barrier)
        second.start()
        comm.barrier()
        second.join()
        return fault(Misuse, lambda: comm.exchange([(torch.ones(1), 1 - comm.rank)], []))

    text = "rank 0 sends to rank 1, which itself waits to send to rank 0; try: put both in one exchange"
    assert ranks(2).run(fn) == [text] * 2


def test_a_message_against_a_collective(ranks):
    def fn(comm):
        if comm.rank == 0:
            return fault(Mismatch, lambda: comm.all_reduce(torch.ones(4)))
        return fault(Mismatch, lambda: comm.exchange([], [(torch.ones(1), 0)]))

    text = "rank 0 waits in all_reduce of (4,) float32 for rank 1, which waits in exchange (from 0) for rank 0"
    assert ranks(2).run(fn) == [f"{text}; try: make the same calls in one order on every rank"] * 2


def test_a_send_is_over_only_when_its_receive_is_posted(ranks):
    """The ranks of one host read one clock."""

    def fn(comm):
        x = torch.ones(1)
        if comm.rank == 0:
            comm.exchange([(x, 1)], [])
            return time.perf_counter()
        torch.ones(2000, 2000).sum()  # something to do first
        posted_s = time.perf_counter()
        comm.exchange([], [(x, 0)])
        return posted_s

    over_s, posted_s = ranks(2).run(fn)
    assert over_s >= posted_s


def test_messages_of_a_batch_go_on_while_others_wait(ranks):
    """Rank 2 takes rank 0's message only after it got one that rank 1 sends when it has its own."""

    def fn(comm):
        x = torch.full((1,), float(comm.rank))
        if comm.rank == 0:
            return comm.exchange([(x, 1), (x, 2)], [])
        comm.exchange([], [(x, comm.rank - 1)])
        if comm.rank == 1:
            return comm.exchange([(x, 2)], [])
        comm.exchange([], [(x, 0)])
        return x.item()

    assert ranks(3).run(fn)[2] == 0


@pytest.mark.parametrize("wanted", [torch.ones(2), torch.ones(3).double()])
def test_a_message_that_does_not_fit(ranks, wanted):
    def fn(comm):
        sends, receives = ([(torch.ones(3), 1)], []) if comm.rank == 0 else ([], [(wanted, 0)])
        return fault(Mismatch, lambda: comm.exchange(sends, receives))

    room = f"{wanted.numel()} {str(wanted.dtype).removeprefix('torch.')}"
    text = f"rank 0 to rank 1 does not fit its buffer; got 3 float32 sent, room for {room}; expected one size and dtype"
    assert {t.removeprefix("message 1 from ") for t in ranks(2).run(fn) if "fit its buffer" in t} == {text}


def test_started_outputs_are_poison_until_waited_for(ranks):
    def fn(comm):
        x, n, y = torch.ones(2), torch.ones(2, dtype=torch.int64), torch.zeros(2, dtype=torch.bool)
        works = [comm.start("all_reduce", x), comm.start("all_reduce", n), comm.start("broadcast", y, 0)]
        seen = x.isnan().all().item(), n.tolist(), y.tolist()
        for work in works:
            work.wait()
        (start, end) = works[0].span()
        return seen, x.tolist(), n.tolist(), y.tolist(), start <= end

    most = [torch.iinfo(torch.int64).max] * 2
    assert ranks(2).run(fn) == [
        ((True, most, [rank == 1] * 2), [2, 2], [2, 2], [False, False], True) for rank in range(2)
    ]


@pytest.mark.parametrize("verb", ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "barrier"])
def test_every_collective_may_be_started(ranks, verb):
    def fn(comm):
        def buffers():
            x, part = torch.arange(6.0) + comm.rank, torch.full((3,), float(comm.rank))
            return {"all_reduce": (x,), "broadcast": (x, 1), "all_gather": (x, part), "reduce_scatter": (part, x),
                    "all_to_all": (torch.empty(6), x), "barrier": ()}[verb]  # fmt: skip

        called, started = buffers(), buffers()
        getattr(comm, verb)(*called)
        comm.start(verb, *started).wait()
        return all(torch.equal(a, b) for a, b in zip(called[:1], started[:1]))

    assert ranks(2).run(fn) == [True, True]


def test_a_gather_in_place_may_be_started(ranks):
    def fn(comm):
        flat = torch.zeros(4)
        mine = flat[2 * comm.rank : 2 * comm.rank + 2]
        mine += comm.rank + 1
        comm.start("all_gather", flat, mine).wait()
        return flat.tolist()

    assert ranks(2).run(fn) == [[1, 1, 2, 2]] * 2


@pytest.mark.parametrize("touch", ["input", "output"])
def test_buffers_of_started_work_must_be_left_alone(ranks, touch):
    def fn(comm):
        x, out = torch.ones(2), torch.empty(4)
        work = comm.start("all_gather", out, x)
        (x if touch == "input" else out)[1] = 7
        return fault(Misuse, work.wait)

    done = "its input was changed" if touch == "input" else "its output was written"
    assert ranks(2).run(fn) == [
        f"rank {r}, all_gather of (2,) float32: {done} before wait(); try: touch it after wait()" for r in range(2)
    ]


def test_the_next_call_names_a_missing_wait_when_it_touches_the_buffer(ranks):
    def fn(comm):
        flat = torch.ones(8)
        work = comm.start("all_reduce", flat[:4])
        comm.all_reduce(flat[4:])
        text = fault(Misuse, lambda: comm.all_reduce(flat[3:5]))
        work.wait()
        comm.all_reduce(flat[3:5])
        return text, flat.tolist()

    results = ranks(2).run(fn)
    assert [flat for _, flat in results] == [[2, 2, 2, 4, 4, 2, 2, 2]] * 2
    assert [text for text, _ in results] == [
        f"rank {r} gives all_reduce a tensor of its all_reduce of (4,) float32, which is not over; "
        "try: wait() for what was started first"
        for r in range(2)
    ]


def test_two_messages_may_read_one_tensor(ranks):
    def fn(comm):
        x, y, z, peer = torch.full((1,), float(comm.rank)), torch.empty(1), torch.empty(1), 1 - comm.rank
        works = [comm.start("exchange", [(x, peer)], [(out, peer)]) for out in (y, z)]
        for work in works:
            work.wait()
        return y.item(), z.item()

    assert ranks(2).run(fn) == [(1, 1), (0, 0)]


def test_a_lost_work_is_named_by_the_next_call_and_by_close():
    def fn(comm):
        comm.start("all_reduce", torch.ones(4))
        gc.collect()
        return fault(Misuse, comm.barrier), fault(Misuse, comm.close)

    for rank, texts in enumerate(on_threads(fn, 2)):
        text = (
            f"rank {rank} never waited for its all_reduce of (4,) float32; try: keep the Work that start returns, and"
        )
        assert [t.startswith(text) for t in texts] == [True, True]


def test_close_names_a_work_that_is_kept_and_not_waited_for(ranks):
    def fn(comm):
        work = comm.start("exchange", [(torch.ones(1), 1 - comm.rank)], [(torch.ones(1), 1 - comm.rank)])
        text = fault(Misuse, comm.close)
        work.wait()
        comm.close()
        return text

    assert ranks(2).run(fn)[0].startswith("rank 0 never waited for its exchange (to 1, from 1)")


def test_a_function_that_leaves_work_unwaited_is_told_when_it_returns(ranks):
    def fn(comm):
        kept.append(comm.start("all_reduce", torch.ones(4)))

    kept = []
    with pytest.raises(RankError, match=r"never waited for its all_reduce of \(4,\) float32; try: keep the Work"):
        ranks(2).run(fn)


def test_bad_input_is_refused_before_anybody_is_told(ranks):
    def fn(comm):
        text = fault(Misuse, lambda: comm.broadcast(torch.arange(6).view(2, 3).t(), 0))
        also = fault(UserError, lambda: comm.start("all_reduce", torch.ones(2, dtype=torch.int16)))
        comm.barrier()
        return text.partition(";")[0], also.partition(";")[0]

    expected = "broadcast: the tensor is strided", "all_reduce: not every backend knows this dtype"
    assert ranks(2).run(fn) == [expected] * 2


def test_who_does_not_come_is_named_when_time_is_up(ranks):
    def fn(comm):
        comm = contract(comm, timeout_s=0.2)
        return fault(Deadline, comm.barrier) if comm.rank != 1 else ""

    first, _, third = ranks(3).run(fn)
    assert first == third
    assert first in [f"rank {r} waits in barrier for rank 1, longer than 0.2 s" for r in (0, 2)]


def test_abort_frees_all_ranks(ranks):
    def fn(comm):
        if comm.rank == 0:
            comm.abort("enough")
        return fault(Aborted, comm.barrier), fault(Aborted, lambda: comm.exchange([(torch.ones(1), 1 - comm.rank)], []))

    assert ranks(2).run(fn) == [("enough", "enough")] * 2


def test_a_rank_that_fails_frees_those_who_wait_for_its_page(ranks):
    def fn(comm):
        if comm.rank == 1:
            raise KeyError("the reason")
        return comm.barrier()

    with pytest.raises(RankError, match="rank 1 failed first: KeyError"):
        ranks(3).run(fn)
