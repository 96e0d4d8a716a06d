"""Every verb over shared memory gives the right numbers, to the bit, whichever way a tensor goes, however it is cut."""

import subprocess
import sys
import threading
import time
from functools import reduce

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lt_core.base.errors import Aborted, Deadline, Mismatch, Misuse, RankError, UserError
from lt_core.comm import Comm, threads
from lt_core.comm.buffers import allocate, free
from lt_core.comm.checks import SUMMED
from lt_core.comm.shared_memory import names, over, segment
from lt_core.comm.shared_memory.room import STAGES_BYTES, fitting_stage, room_bytes

STAGE_BYTES = 512 << 10
WAYS = ["anywhere", "in a slot"]
ELEMENTS = [1, 2, 7, 1023, 20_000, STAGE_BYTES // 8 - 1, STAGE_BYTES // 8 + 1, 3 * STAGE_BYTES // 8 + 5]


def run(fn, size, *args):
    """`fn(comm, *args)` on ranks that are threads, and share memory as processes would."""
    return threads.run(lambda comm: fn(over(comm, STAGE_BYTES), *args), size, (), 20)


def values(rank, elements, dtype=torch.float64, seed=0):
    """What a rank brings: no two alike, and no sum that does not round."""
    made = torch.rand(elements, generator=torch.Generator().manual_seed(1000 * seed + rank), dtype=torch.float64)
    return (100 * made).to(dtype) if not dtype.is_floating_point else (made - 0.5).to(dtype)


def total(xs):
    return reduce(torch.add, xs)


def placed(comm, x, way):
    """`x`, or a copy of it in a slot, somewhat behind its beginning."""
    if way == "anywhere":
        return x.clone()
    slot = allocate(comm, x.numel() + 3, x.dtype)[3:]
    slot.copy_(x)
    return slot


def same(a, b):
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def summed(comm, ways):
    xs = [[values(r, n) for r in range(comm.size)] for n in ELEMENTS]
    return [same(total(x), _all_reduced(comm, placed(comm, x[comm.rank], way))) for x in xs for way in ways]


def _all_reduced(comm, x):
    comm.all_reduce(x)
    return x


@pytest.mark.parametrize("size", range(1, 9))
def test_sums_run_in_the_order_of_ranks(size):
    assert all(map(all, run(summed, size, WAYS if size in (1, 2, 3, 8) else WAYS[1:])))


def test_a_slot_here_and_none_there():
    def fn(comm):
        xs = [values(r, 40_000) for r in range(comm.size)]
        x, slot = xs[comm.rank].clone(), placed(comm, xs[comm.rank], WAYS[1])
        return same(total(xs), _all_reduced(comm, slot if comm.rank % 2 else x))

    assert run(fn, 3) == [True] * 3


def halves(comm, elements, dtype, ways):
    """Whether all_reduce gives the bits of reduce_scatter and all_gather, and of the sum in one process."""
    xs = [values(r, comm.size * elements, dtype) for r in range(comm.size)]
    whole = _all_reduced(comm, placed(comm, xs[comm.rank], ways[0]))
    x, out = placed(comm, xs[comm.rank], ways[1]), torch.empty(comm.size * elements, dtype=dtype)
    part = torch.empty(elements, dtype=dtype)
    comm.reduce_scatter(part, x)
    comm.all_gather(out, placed(comm, part, ways[2]))
    return same(whole, out) and same(whole, total(xs)) and same(x, xs[comm.rank])


@pytest.mark.parametrize("dtype", SUMMED, ids=str)
def test_both_halves_give_the_bits_of_the_whole(dtype):
    assert run(halves, 3, 30_000, dtype, [WAYS[0], WAYS[1], WAYS[0]]) == [True] * 3


@settings(max_examples=12)
@given(st.integers(1, 5), st.integers(1, 90_000), st.lists(st.sampled_from(WAYS), min_size=3, max_size=3), st.data())
def test_whatever_the_size_the_way_and_the_buckets(size, elements, ways, data):
    cut = data.draw(st.integers(0, elements * size))

    def fn(comm):
        x = values(comm.rank, elements * comm.size, torch.float32)
        buckets = [placed(comm, part, ways[0]) for part in (x[:cut], x[cut:])]
        sums = torch.cat([_all_reduced(comm, bucket) for bucket in buckets])
        xs = [values(r, elements * comm.size, torch.float32) for r in range(comm.size)]
        return same(sums, total(xs)) and halves(comm, elements, torch.float32, ways)

    assert all(run(fn, size))


def test_chunks_in_place():
    """As sharded parameters do: the part lies in the whole, scattered there and gathered from there."""

    def fn(comm):
        n = 50_000
        xs, flat = [values(r, n * comm.size) for r in range(comm.size)], allocate(comm, n * comm.size, torch.float64)
        flat.copy_(xs[comm.rank])
        mine = flat[comm.rank * n : (comm.rank + 1) * n]
        comm.reduce_scatter(mine, flat)
        comm.all_gather(flat, mine)
        return same(flat, total(xs))

    assert run(fn, 4) == [True] * 4


def test_outputs_elsewhere_in_the_input():
    """Others still read there: so it is not done in place."""

    def fn(comm):
        n = 40_000
        xs, flat = [values(r, n * comm.size) for r in range(comm.size)], allocate(comm, n * comm.size, torch.float64)
        flat.copy_(xs[comm.rank])
        elsewhere = flat[:n]
        comm.reduce_scatter(elsewhere, flat)
        return same(elsewhere, total(xs)[comm.rank * n : (comm.rank + 1) * n])

    assert run(fn, 3) == [True] * 3


def test_outputs_anywhere_in_a_long_input():
    """What was written of one part was then read of the next, where a tensor crosses in several."""

    def fn(comm):
        n, size, rank = 3 * STAGE_BYTES // 16, comm.size, comm.rank
        xs = [values(r, n * size) for r in range(size)]
        scattered, gathered, swapped = (xs[rank].clone() for _ in range(3))
        out = scattered[n - 1000 : 2 * n - 1000]
        comm.reduce_scatter(out, scattered)
        mine = gathered[n - 1000 : 2 * n - 1000]
        own = [x[n - 1000 : 2 * n - 1000] for x in xs]
        comm.all_gather(gathered, mine)
        rows = [[1000, n - 1000], [n + 500, n - 500]]  # that rank r sends to rank q
        come = [row[rank] for row in rows]
        comm.all_to_all(swapped[: sum(come)], swapped[: sum(rows[rank])], come, rows[rank])
        parts = [x[: sum(row)].split(row)[rank] for x, row in zip(xs, rows)]
        right = (total(xs)[rank * n : (rank + 1) * n], torch.cat(own), torch.cat(parts))
        return [same(a, b) for a, b in zip((out, gathered, swapped[: sum(come)]), right)]

    assert run(fn, 2) == [[True] * 3] * 2


MOVED = [torch.float32, torch.bool, torch.uint8, torch.bfloat16]


def moved(comm, elements, dtype, way):
    r, size = comm.rank, comm.size
    xs = [values(q, size * elements, torch.float32).to(dtype) for q in range(size)]
    x = placed(comm, xs[r], way)
    gathered, swapped, told = (torch.empty(n, dtype=dtype) for n in (size**2 * elements, size * elements, 0))
    told = placed(comm, xs[r], way)
    comm.all_gather(gathered, x)
    comm.all_to_all(swapped, x)
    comm.broadcast(told, size - 1)
    parts = [y[r * elements : (r + 1) * elements] for y in xs]
    return same(gathered, torch.cat(xs)) and same(swapped, torch.cat(parts)) and same(told, xs[-1])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_what_only_moves(way, dtype):
    assert run(moved, 3, 1001, dtype, way) == [True] * 3


@pytest.mark.parametrize("way", WAYS)
def test_much_that_only_moves(way):
    assert run(moved, 4, 3 * STAGE_BYTES // 16, torch.float32, way) == [True] * 4


def test_uneven_rows():
    def fn(comm):
        out = []
        for way in WAYS:
            go = [(comm.rank + 1) * q * 900 for q in range(comm.size)]
            come = [(q + 1) * comm.rank * 900 for q in range(comm.size)]
            x = values(comm.rank, 2 * sum(go)).view(-1, 2)
            if way == "in a slot":
                slot = allocate(comm, 20 * 900 * comm.size, x.dtype)  # as long on all ranks
                x = slot[: x.numel()].view(-1, 2).copy_(x)
            got, xs = torch.empty(sum(come), 2, dtype=x.dtype), []
            comm.all_to_all(got, x, come, go)
            for q in range(comm.size):
                rows = [(q + 1) * k * 900 for k in range(comm.size)]
                xs.append(values(q, 2 * sum(rows)).view(-1, 2).split(rows)[comm.rank])
            out.append(same(got, torch.cat(xs)))
        return out

    assert run(fn, 4) == [[True, True]] * 4


def test_no_rows_of_a_buffer():
    """A view without elements has no address; rank 0 sends nothing, as an expert's rank without tokens does."""

    def fn(comm):
        slot = allocate(comm, 12)
        slot.fill_(comm.rank)
        out = torch.empty(sum(range(comm.size)))
        comm.all_to_all(out, slot[4 : 4 + comm.rank * comm.size], list(range(comm.size)), [comm.rank] * comm.size)
        return out.tolist()

    assert run(fn, 3) == [[1.0, 2.0, 2.0]] * 3


def test_rows_that_nobody_expects():
    def fn(comm):
        come, go = ([1, 0], [2, 0]) if comm.rank else ([1, 1], [1, 1])
        comm.all_to_all(torch.empty(sum(come)), torch.ones(2), come, go)

    with pytest.raises(RankError) as caught:
        run(fn, 2)
    assert "all_to_all: rank 0 expects 4 bytes of rank 1; got 8 sent; expected the same count on both" in str(
        caught.value
    )


def crossed(comm, elements, dtype):
    """Two messages to each other rank and back, the receives listed by falling peer."""
    others = [r for r in range(comm.size) if r != comm.rank]
    sends = [(values(10 * comm.rank + k, elements).to(dtype), peer) for peer in others for k in (1, 2)]
    got = [(torch.empty(elements, dtype=dtype), peer) for peer in reversed(others) for _ in (1, 2)]
    comm.exchange(sends, got)
    expected = [values(10 * peer + k, elements).to(dtype) for peer in reversed(others) for k in (1, 2)]
    return all(same(y, x) for (y, _), x in zip(got, expected))


@pytest.mark.parametrize(("elements", "dtype"), [(1, torch.int16), (5000, torch.complex64), (400_001, torch.float32)])
def test_messages(elements, dtype):
    assert run(crossed, 4, elements, dtype) == [True] * 4


@pytest.mark.parametrize("group", ["the same", "a subset"])
def test_messages_move_on_while_a_rank_waits_in_a_collective(group):
    """Rank 0 began to receive before the barrier, rank 1 sends all of it before it comes there."""

    def fn(comm):
        meeting = comm if group == "the same" else comm.subset([1, 0])
        x = torch.full((1 << 20,), float(comm.rank))
        if comm.rank:
            comm.exchange([(x, 0)], [])
            meeting.barrier()
        else:
            work = comm.start("exchange", [], [(x, 1)])
            meeting.barrier()
            work.wait()
        return x.sum().item()

    assert run(fn, 2) == [float(1 << 20)] * 2


def test_a_buffer_is_its_owners_again_once_its_group_has_ended():
    """The rest of a message, of which the first pieces had come, was written into it during any later wait."""
    waiting, sent, filled = (threading.Event() for _ in range(3))

    def fn(comm):
        group, x = comm.subset([0, 1]), torch.ones(1 << 20)
        if comm.rank:
            waiting.wait(10)
            group.start("exchange", [(x, 0)], [])
            group.abort("enough")
            sent.set()
            filled.wait(10)
        else:
            work = group.start("exchange", [], [(x, 1)])
            waiting.set()
            sent.wait(10)
            with pytest.raises(Aborted, match="enough"):
                work.wait()
            x.fill_(7)
            filled.set()
        for _ in range(20):
            comm.barrier()
        return x.unique().tolist()

    assert run(fn, 2) == [[7.0], [1.0]]


def test_a_message_that_does_not_fit():
    def fn(comm):
        x = torch.ones(2 + comm.rank)
        comm.exchange([(x, 1 - comm.rank)], [(torch.empty(4), 1 - comm.rank)])

    with pytest.raises(RankError) as caught:
        run(fn, 2)
    assert "does not fit its buffer; got" in str(caught.value) and "room for 16; expected one size" in str(caught.value)


def test_what_is_begun_is_done_in_its_order():
    def fn(comm):
        xs = [torch.full((30_000,), float(k + comm.rank)) for k in range(6)]
        works = [comm.start("all_reduce", x) for x in xs]
        again = torch.ones(1)
        comm.all_reduce(again)  # behind them
        done = [x[0].item() for x in xs]
        for work in reversed(works):
            work.wait()
            work.wait()  # again is no fault
        (start_s, end_s), over_s = works[0].span(), time.perf_counter()
        return done, again.item(), start_s < end_s < over_s

    assert run(fn, 2) == [([2.0 * k + 1 for k in range(6)], 2.0, True)] * 2


FORGETS = """
import torch
from lt_core.comm import threads
from lt_core.comm.shared_memory import over

def fn(comm):
    comm = over(comm)
    if comm.rank == 0:
        comm.start("all_reduce", torch.ones(3))  # rank 1 never comes, and nobody waits

threads.run(fn, 2)
print("left")
"""


@pytest.mark.processes
def test_a_process_ends_well_with_something_begun():
    done = subprocess.run([sys.executable, "-c", FORGETS], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")


def test_two_threads_of_a_rank_take_turns():
    def fn(comm):
        def all_reduce(x):
            for _ in range(50):
                comm.all_reduce(x)

        x = torch.ones(3)  # both threads make the same call, so their order is no matter
        others = [threading.Thread(target=all_reduce, args=(torch.ones(3),)) for _ in range(2)]
        for other in others:
            other.start()
        for other in others:
            other.join()
        comm.all_reduce(x)
        return x.tolist()

    assert run(fn, 2) == [[2.0] * 3] * 2


def test_empty_tensors_move_nothing():
    """pytorch#85234, gloo#179: a tensor of no elements ended the process, or hung."""

    def fn(comm):
        for shape in ((0,), (1, 0, 2)):
            x, whole = torch.ones(shape), torch.ones((shape[0] * comm.size, *shape[1:]))
            comm.all_reduce(x)
            comm.broadcast(x, 0)
            comm.all_gather(whole, x)
            comm.reduce_scatter(x, whole)
            comm.all_to_all(whole.view(-1), whole.view(-1), [0] * comm.size, [0] * comm.size)
            comm.exchange([(x, (comm.rank + 1) % comm.size)], [(x.clone(), (comm.rank - 1) % comm.size)])
        return comm.traffic.messages, allocate(comm, 0).shape

    assert run(fn, 2) == [(0, (0,))] * 2


def counted(comm):
    comm.traffic.clear()
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.exchange([(torch.ones(10), right), (torch.ones(0), right)], [(torch.ones(10), left), (torch.ones(0), left)])
    buffer = allocate(comm, 30)
    comm.all_reduce(buffer)
    comm.subset([0, 1, 2])
    comm.barrier()
    return comm.traffic


def test_traffic_is_counted_as_on_every_back_end():
    for rank, traffic in enumerate(run(counted, 3)):
        right = (rank + 1) % 3
        assert (traffic.counted.bytes_to, traffic.counted.messages_to) == ({right: 40}, {right: 1})
        assert (traffic.by_law.bytes_to, traffic.by_law.messages_to) == ({right: 160}, {right: 4})


def test_a_strided_tensor_is_refused():
    """pytorch#192920: gloo read a strided tensor's storage as if it were dense."""

    def fn(comm):
        x = torch.arange(6.0).view(2, 3).t()
        comm.all_reduce(x)

    with pytest.raises(RankError, match="Misuse: all_reduce: the tensor is strided") as caught:
        run(fn, 2)
    assert isinstance(caught.value.__cause__, Misuse)


def on_a_parameter(comm):
    p = torch.nn.Parameter(torch.ones(2))
    comm.all_reduce(p)
    with torch.inference_mode():
        x = torch.tensor(1.0 + comm.rank)
        comm.all_reduce(x)
        y = torch.ones(2)
    comm.broadcast(y, 1)  # made in inference mode, and given outside of it
    return p.tolist(), p.requires_grad, x.item(), y.tolist()


def test_parameters_and_tensors_of_inference_mode():
    assert run(on_a_parameter, 2) == [([2.0, 2.0], True, 3.0, [1.0, 1.0])] * 2


def test_it_is_a_communicator():
    def face(comm):
        return isinstance(comm, Comm), comm.backend, comm.rank, comm.size, comm.ended

    assert run(face, 2) == [(True, "shared_memory", rank, 2, "") for rank in (0, 1)]


def test_subsets():
    def fn(comm):
        half = [comm.subset([2, 0]), comm.subset([3, 1])][comm.rank % 2]
        outside = [comm.subset([2, 0]), comm.subset([3, 1])][1 - comm.rank % 2]
        out = torch.empty(2)
        half.all_gather(out, torch.tensor([float(comm.rank)]))
        alone = half.subset([0])
        again = [comm.subset([2, 0]), comm.subset([3, 1])][comm.rank % 2]
        with pytest.raises(UserError, match="is no member of the group"):
            outside.barrier()
        return half.rank, out.tolist(), again is half, alone.rank

    odd, even = [3.0, 1.0], [2.0, 0.0]
    assert run(fn, 4) == [(1, even, True, -1), (1, odd, True, -1), (0, even, True, 0), (0, odd, True, 0)]


def test_a_subset_that_ranks_do_not_agree_on():
    """One took the other's word for the path of a file: 'Is a directory'."""
    with pytest.raises(RankError) as error:
        run(lambda comm: comm.subset([0, 1] if comm.rank else [1, 0]), 2)
    assert error.value.kind == "Mismatch" and "asks for another; expected the same group" in error.value.message


def test_a_subset_that_a_rank_ended_is_made_again():
    def fn(comm):
        for _ in range(3):
            group = comm.subset([1, 0])
            if comm.rank == 0:
                group.abort("enough")
            with pytest.raises(Aborted, match="enough"):
                group.barrier()
        last = comm.subset([1, 0])
        return _all_reduced(last, torch.ones(1)).item(), len(last._family.messages)

    assert run(fn, 2) == [(2, 2)] * 2  # and of those that ended nothing is left to be moved on


@pytest.mark.parametrize("nbytes", [1 << 15, 3 << 15, -1])
def test_a_stage_holds_a_part_for_each_rank(nbytes):
    with pytest.raises(RankError, match=f"a stage of shared memory; got {nbytes} bytes; expected a power of two from"):
        threads.run(lambda comm: over(comm, nbytes), 1)


def test_an_abort_is_heard_by_who_waits():
    def fn(comm):
        if comm.rank == 2:
            comm.exchange([], [(torch.empty(1), 0), (torch.empty(1), 1)])  # they have begun
            comm.abort("rank 2 has seen enough")
            return "", 0.0
        works = [comm.start("all_reduce", torch.ones(4)), comm.start("exchange", [], [(torch.ones(1), 2)])]
        comm.exchange([(torch.ones(1), 2)], [])
        start_s, said = time.perf_counter(), []
        for wait in (comm.barrier, *(work.wait for work in works)):
            with pytest.raises(Aborted) as caught:
                wait()
            said.append(str(caught.value))
        return said, time.perf_counter() - start_s < 5

    assert run(fn, 3)[:2] == [(["rank 2 has seen enough"] * 3, True)] * 2


@pytest.mark.parametrize("verb", ["all_reduce", "started", "exchange"])
def test_who_does_not_come_is_named_when_time_is_up(verb):
    def fn(comm):
        if comm.rank == 1:
            return ""
        comm.timeout_s = 0.05
        with pytest.raises(Deadline) as caught:
            if verb == "all_reduce":
                comm.all_reduce(torch.ones(4))
            elif verb == "started":
                comm.start("all_reduce", torch.ones(4)).wait()
            else:
                comm.exchange([], [(torch.ones(1), 1)])
        return str(caught.value), comm.ended == str(caught.value)

    name = "exchange" if verb == "exchange" else "all_reduce"
    assert run(fn, 2)[0] == (f"rank 0 waited 0.05 s in {name}: of 2 ranks [1] have not come", True)


def test_a_room_is_a_small_part_of_what_is_free():
    assert fitting_stage(8, 1 << 40) == 1 << 20 == STAGES_BYTES[0]
    assert fitting_stage(8, 64 << 20) == 128 << 10 == STAGES_BYTES[-1]
    assert 64 * room_bytes(4, fitting_stage(4, 1 << 31)) <= 1 << 31 and fitting_stage(4, 1 << 31) == 1 << 20


def grown(comm, stage_bytes):
    comm = over(comm, stage_bytes)
    before = comm._phases.room.stage_bytes
    xs = [values(rank, 400_000) for rank in range(comm.size)]
    right = same(total(xs), _all_reduced(comm, xs[comm.rank].clone()))
    return right, comm._phases.room.stage_bytes // before, summed(comm, WAYS[:1])


def on_stages(size, stage_bytes=None):
    """Whether sums are right there, and how many times as large stages are after a tensor of 3.2 MB."""
    found = threads.run(grown, size, (stage_bytes,), 20)
    return [(right and all(sums), times) for right, times, sums in found]


def test_stages_grow_for_large_tensors():
    assert on_stages(2) == [(True, 4)] * 2


def test_stages_of_a_given_size_stay():
    assert on_stages(3, STAGE_BYTES) == [(True, 1)] * 3


def test_stages_that_find_no_room_stay(monkeypatch):
    monkeypatch.setattr(names, "free_bytes", lambda: 60 << 20)
    assert on_stages(2) == [(True, 1)] * 2


def test_what_is_freed_is_a_plain_tensor():
    def fn(comm):
        x, y = allocate(comm, 40_000), allocate(comm, 40_000)
        free(comm, x)
        return _all_reduced(comm, x + 1)[0].item(), _all_reduced(comm, y + 1)[0].item(), _all_reduced(comm, x)[0].item()

    assert run(fn, 2) == [(2, 2, 0)] * 2


def test_a_buffer_is_freed_beside_a_collective_of_another_tensor():
    """It is no meeting: rank 0 has done the collective before it frees the last buffer, rank 1 does it after that."""

    def fn(comm):
        slot, x = allocate(comm, 100), torch.arange(40_000.0) * (1 + comm.rank)
        if comm.rank:
            with comm._lane._turn:
                work = comm.start("all_reduce", x)
                free(comm, slot)
            work.wait()
        else:
            comm.start("all_reduce", x).wait()
            free(comm, slot)
        return torch.equal(x, 3 * torch.arange(40_000.0)) and _all_reduced(comm, torch.ones(1)).item()

    assert run(fn, 2) == [2.0, 2.0]


def test_buffers_of_different_sizes():
    with pytest.raises(RankError) as caught:
        run(lambda comm: allocate(comm, 1024 * (1 + comm.rank)), 2)
    text = "rank 0 asks for 12288 bytes of shared memory, rank 1 for 20480; try: allocate the same on every rank"
    assert text in str(caught.value)


def test_a_buffer_without_room_is_a_plain_one_and_says_so(capsys, monkeypatch):
    def fn(comm):
        monkeypatch.setattr(names, "no_room", lambda nbytes: "the shelf is full")
        x = allocate(comm, 40_000)
        x += comm.rank
        return _all_reduced(comm, x)[-1].item()

    assert run(fn, 2) == [1, 1]
    assert capsys.readouterr().err == "lt_core: 40000 elements will be copied: the shelf is full\n"


def test_without_room_ranks_talk_as_before_and_say_so(capsys, monkeypatch):
    monkeypatch.setattr(names, "no_room", lambda nbytes: "the shelf is full")
    assert run(lambda comm: (comm.backend, _all_reduced(comm, torch.ones(1)).item()), 2) == [("threads", 2.0)] * 2
    assert capsys.readouterr().err == "lt_core: ranks talk over threads: the shelf is full\n"


def test_one_rank_that_cannot_map_it(capsys, monkeypatch):
    """As under a limit of its address space: all take the other way, nobody waits for it."""

    def fn(comm):
        def limited(fd, nbytes):
            if comm.rank == 1 and threading.current_thread() is here:
                raise OSError(12, "Cannot allocate memory")
            return plain(fd, nbytes)

        here, plain = threading.current_thread(), segment.mmap.mmap
        if comm.rank == 1:
            monkeypatch.setattr(segment.mmap, "mmap", limited)
        return over(comm).backend

    assert threads.run(fn, 2, (), 20) == ["threads"] * 2
    assert capsys.readouterr().err == (
        "lt_core: ranks talk over threads: not all ranks share memory: Cannot allocate memory\n"
    )


def test_a_subset_without_room(capsys, monkeypatch):
    full = threading.Event()
    monkeypatch.setattr(names, "no_room", lambda nbytes: "the shelf is full" if full.is_set() else "")

    def fn(comm):
        inner = comm.subset([1, 0])
        comm.barrier()
        full.set()
        group = comm.subset([0, 1])
        with pytest.raises(UserError) as caught:
            inner.subset([0])
        return group.backend, str(caught.value)

    text = "no group of ranks [0]; got the shelf is full; try: backend='gloo'"
    assert run(fn, 2) == [("threads", text)] * 2
    assert capsys.readouterr().err == "lt_core: ranks [0, 1] talk over threads: the shelf is full\n"


def test_nothing_has_a_name_once_all_have_mapped_it():
    def fn(comm):
        allocate(comm, 100)
        comm.subset(range(comm.size))
        return [path.name for path in names.folder().glob(f"{names.PREFIX}*")]

    assert run(fn, 2) == [[], []]


def test_words_of_the_contract_are_ours_too():
    from lt_core.comm.contract import contract

    def fn(comm):
        held = contract(comm)
        with pytest.raises(Mismatch) as caught:
            held.all_reduce(torch.ones(4)) if comm.rank else held.broadcast(torch.ones(4), 0)
        return "rank 0 calls broadcast of (4,) float32 from rank 0" in str(caught.value)

    assert run(fn, 2) == [True, True]
