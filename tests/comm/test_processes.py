"""The communicator of processes gives right values, exact counts and clear refusals, and nobody waits in vain."""

import os
import time
from pathlib import Path

import pytest
import torch

from lt_core.base.errors import Aborted, Deadline, Misuse, RankError, UserError
from lt_core.comm import Comm, host
from lt_core.comm.groups import GLOO_THREADS

pytestmark = pytest.mark.processes
SIZES = [1, 2, 3, 8]


def refused(kind, act):
    """The text with which `act` is refused."""
    with pytest.raises(kind) as caught:
        act()
    return str(caught.value)


def around(comm, x):
    """What comes from the left neighbour while `x` goes to the right one."""
    y = torch.empty_like(x)
    comm.exchange([(x, (comm.rank + 1) % comm.size)], [(y, (comm.rank - 1) % comm.size)])
    return y


# Values


def collectives(comm):
    n, r = comm.size, comm.rank
    summed, told, gathered = torch.arange(5.0) + r, torch.full((2, 2), r), torch.empty(3 * n)
    scattered, swapped = torch.empty(2), torch.empty(n, dtype=torch.int64)
    comm.all_reduce(summed)
    comm.broadcast(told, n - 1)
    comm.all_gather(gathered, torch.arange(3.0) + 10 * r)
    comm.reduce_scatter(scattered, torch.arange(2.0 * n) + 100 * r)
    comm.all_to_all(swapped, torch.arange(n) + 10 * r)
    comm.barrier()
    return summed, told, gathered, scattered, swapped


@pytest.mark.parametrize("size", SIZES)
def test_the_collectives(processes, size):
    ranks = range(size)
    for r, (summed, told, gathered, scattered, swapped) in enumerate(processes(size).run(collectives)):
        assert torch.equal(summed, size * torch.arange(5.0) + sum(ranks))
        assert torch.equal(told, torch.full((2, 2), size - 1))
        assert torch.equal(gathered, torch.cat([torch.arange(3.0) + 10 * q for q in ranks]))
        assert torch.equal(scattered, size * (2.0 * r + torch.arange(2)) + 100 * sum(ranks))
        assert torch.equal(swapped, torch.tensor([10 * q + r for q in ranks]))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int16, torch.bool, torch.complex64, torch.bfloat16, torch.float8_e4m3fn]
)
def test_any_dtype_can_be_exchanged(processes, dtype):
    got = processes(3).run(lambda comm: around(comm, (torch.arange(5) + comm.rank).to(dtype)))
    for rank, y in enumerate(got):
        assert torch.equal(y.view(torch.uint8), (torch.arange(5) + (rank - 1) % 3).to(dtype).view(torch.uint8))


def uneven(comm):
    """Rank r sends r rows to rank 0 and nothing to the others."""
    go = [comm.rank] + [0] * (comm.size - 1)
    come = list(range(comm.size)) if comm.rank == 0 else [0] * comm.size
    out = torch.empty(sum(come), 2)
    comm.all_to_all(out, torch.full((comm.rank, 2), float(comm.rank)), come, go)
    return out[:, 0].tolist()


def test_uneven_parts(processes):
    assert processes(4).run(uneven) == [[1, 2, 2, 3, 3, 3], [], [], []]


def lopsided(comm):
    """Only ranks 0 and 1 have rows for each other; then nobody has any; then rows are of no elements; then a sum."""
    gone = []
    for rows, width in ((2, 3), (0, 3), (2, 0)):
        counts = [rows * (comm.rank == 1), rows * (comm.rank == 0), 0]
        x, out = torch.full((sum(counts), width), float(comm.rank)), torch.empty(sum(counts), width)
        comm.all_to_all(out, x, counts, counts)
        gone.append((tuple(out.shape), out.unique().tolist()))
    total = torch.tensor([comm.rank + 1.0])
    comm.all_reduce(total)
    return gone, total.item()


def test_a_rank_without_rows_takes_part(processes):
    """It posted nothing: gloo's others waited for its empty messages, and its next collective met their last one."""
    first, second, third = processes(3).run(lopsided)
    assert first == ([((2, 3), [1.0]), ((0, 3), []), ((2, 0), [])], 6.0)
    assert second == ([((2, 3), [0.0]), ((0, 3), []), ((2, 0), [])], 6.0)
    assert third == ([((0, 3), []), ((0, 3), []), ((0, 0), [])], 6.0)


def crossed(comm):
    """Two messages to each other rank and back, the receives listed by falling peer."""
    others = [r for r in range(comm.size) if r != comm.rank]
    sends = [(torch.tensor([10.0 * comm.rank + k]), peer) for peer in others for k in (1, 2)]
    got = [(torch.empty(1), peer) for peer in reversed(others) for _ in (1, 2)]
    comm.exchange(sends, got)
    return [(int(y), peer) for y, peer in got]


def test_messages_of_a_peer_come_in_its_order(processes):
    for rank, got in enumerate(processes(4).run(crossed)):
        others = [r for r in reversed(range(4)) if r != rank]
        assert got == [(10 * peer + k, peer) for peer in others for k in (1, 2)]


def inside_inference_mode(comm):
    with torch.inference_mode():
        x = torch.tensor(1.0 + comm.rank)
        comm.all_reduce(x)
        return (x / comm.size).item(), around(comm, x).item()


def test_a_zero_dim_average_under_inference_mode(processes):
    """intel/torch-xpu-ops#3020, pytorch#126032: collectives failed on 0-dim tensors and under inference_mode."""
    assert processes(2).run(inside_inference_mode) == [(1.5, 3.0)] * 2


def empty_ones(comm):
    shapes = []
    comm.traffic.clear()
    for shape in ((0,), (1, 0, 2)):
        x, whole = torch.ones(shape), torch.ones((shape[0] * comm.size, *shape[1:]))
        comm.all_reduce(x)
        comm.broadcast(x, 0)
        comm.all_gather(whole, x)
        comm.reduce_scatter(x, whole)
        shapes.append(tuple(around(comm, x).shape))
    return shapes, comm.traffic.messages


@pytest.mark.parametrize("size", [2, 4])
def test_nothing_is_sent_of_empty_tensors(processes, size):
    """pytorch#85234, gloo#179: a tensor of no elements ended the process, or hung."""
    assert processes(size).run(empty_ones) == [([(0,), (1, 0, 2)], 0)] * size


def on_a_parameter(comm):
    p = torch.nn.Parameter(torch.ones(2))
    comm.all_reduce(p)
    around(comm, p)
    return p.detach().clone(), p.requires_grad


def test_a_parameter_may_be_given_itself(processes):
    for p, requires_grad in processes(2).run(on_a_parameter):
        assert torch.equal(p, torch.full((2,), 2.0)) and requires_grad


# Counts


def counted(comm):
    comm.traffic.clear()
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    x, y = torch.ones(10), torch.empty(10)
    comm.exchange([(x, right), (x[:3], right), (x[:0], right)], [(y, left), (y[:3], left), (y[:0], left)])
    comm.all_reduce(torch.ones(30))
    return comm.traffic


def test_traffic_by_peer(processes):
    for rank, traffic in enumerate(processes(3).run(counted)):
        right = (rank + 1) % 3
        assert (traffic.counted.bytes_to, traffic.counted.messages_to) == ({right: 52}, {right: 2})
        assert (traffic.by_law.bytes_to, traffic.by_law.messages_to) == ({right: 160}, {right: 4})


def started(comm):
    x = torch.ones(1 << 20)
    begun_s = time.perf_counter()
    work = comm.start("all_reduce", x)
    others = [comm.start("exchange", [(x[:2], 1 - comm.rank)], [(torch.empty(2), 1 - comm.rank)])]
    for one in [work, *others]:
        one.wait()
        one.wait()  # again is no fault
    (start_s, end_s), over_s = work.span(), time.perf_counter()
    return begun_s <= start_s < end_s <= over_s, x[0].item()


def test_what_is_started_has_a_span(processes):
    assert processes(2).run(started) == [(True, 2.0)] * 2


def schedulers(comm):
    """How each of gloo's threads waits for a core, by name."""
    comm.subset([1, 0]).barrier()
    threads = {int(path.parent.name): path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
    return {(name, os.sched_getscheduler(thread)) for thread, name in threads.items() if name in GLOO_THREADS}


@pytest.mark.skipif(not host.LINUX, reason="no such threads")
def test_gloos_threads_take_no_core_from_who_is_to_ask_for_a_message(processes):
    loop, worker = GLOO_THREADS
    for found in processes(2).run(schedulers):
        assert found >= {(loop, os.SCHED_BATCH), (worker, os.SCHED_BATCH)}
        assert (loop, os.SCHED_OTHER) not in found


def test_it_is_a_communicator(processes):
    def face(comm):
        return isinstance(comm, Comm), comm.backend, comm.device.type, comm.rank, comm.size, comm.ended

    assert processes(2).run(face) == [(True, "gloo", "cpu", rank, 2, "") for rank in (0, 1)]


# Subsets


def in_order(comm):
    group = comm.subset([2, 0])
    if group.rank < 0:
        return refused(UserError, lambda: group.all_reduce(torch.ones(1)))
    out = torch.empty(2)
    group.all_gather(out, torch.tensor([float(comm.rank)]))
    return group.rank, group.size, out.tolist(), comm.subset([2, 0]) is group


def test_a_subset_keeps_the_order_and_refuses_who_is_outside(processes):
    """pytorch#75755: a rank outside a group got a handle that did nothing when used."""
    got = processes(3).run(in_order)
    assert (got[0], got[2]) == ((1, 2, [2.0, 0.0], True), (0, 2, [2.0, 0.0], True))
    assert got[1].startswith("all_reduce: rank 1 is no member of the group [2, 0]")


def rooted(comm, members):
    group = comm.subset(members)
    if group.rank < 0:
        return None
    told, tensors = torch.tensor([float(comm.rank)]), torch.empty(1)
    group.broadcast(told, 0)
    if group.rank == 0:
        group.exchange([(told + 0.5, 1)], [])
    else:
        group.exchange([], [(tensors, 0)])
    return told.item(), tensors.item() if group.rank else None


@pytest.mark.parametrize("members", [[1, 3], [2, 3]])
def test_roots_and_peers_are_ranks_of_the_group(processes, members):
    """pytorch#130515, torchrec PR#4601: a root by group was passed as a rank of the world, or the reverse."""
    first, second = members
    got = processes(4).run(rooted, members)
    assert [got[first], got[second]] == [(float(first), None), (float(first), first + 0.5)]
    assert all(got[r] is None for r in range(4) if r not in members)


def test_subsets_of_subsets_without_the_others(processes):
    """Groups of torch must be made by all processes of the world; these by the ranks of the communicator alone."""

    def pairs_of_halves(comm):
        half = [comm.subset(range(4)), comm.subset(range(4, 8))][comm.rank // 4]
        pair = [half.subset([0, 1]), half.subset([2, 3])][half.rank // 2]
        x = torch.tensor([float(comm.rank)])
        pair.all_reduce(x)
        return x.item()

    assert processes(8).run(pairs_of_halves) == [1, 1, 5, 5, 9, 9, 13, 13]


# Refusals


def strided(comm):
    v = comm.rank + 1.0
    bad = [torch.tensor([[v, 0], [v, v]])[:, 0], (torch.arange(6.0) * v).view(2, 3).t()]
    acts = [
        lambda x: comm.all_reduce(x),
        lambda x: comm.broadcast(x, 0),
        lambda x: comm.exchange([(x, 1 - comm.rank)], [(torch.empty(2), 1 - comm.rank)]),
        lambda x: comm.exchange([(torch.empty(2), 1 - comm.rank)], [(x, 1 - comm.rank)]),
    ]
    return [refused(Misuse, lambda act=act, x=x: act(x)) for act in acts for x in bad]


def test_strided_tensors_are_refused(processes):
    """pytorch#192920: gloo reads a strided tensor's storage as if it were dense, and gives wrong numbers."""
    for texts in processes(2).run(strided):
        assert all("the tensor is strided; got shape" in text and "try: x.contiguous()" in text for text in texts)


def refusals(comm):
    x = torch.ones(2)
    return {
        "self": refused(UserError, lambda: comm.exchange([(x, comm.rank)], [])),
        "nobody": refused(UserError, lambda: comm.exchange([], [(x, 2)])),
        "root": refused(UserError, lambda: comm.broadcast(x, -1)),
        "dtype": refused(UserError, lambda: comm.all_reduce(x.to(torch.int16))),
        "verb": refused(UserError, lambda: comm.start("allreduce", x)),
        "sizes": refused(UserError, lambda: comm.all_gather(x, x)),
        "device": refused(UserError, lambda: comm.all_reduce(x.to("meta"))),
    }


def test_what_cannot_work_is_refused_before_it_starts(processes):
    for rank, texts in enumerate(processes(2).run(refusals)):
        assert texts["self"].startswith(f"exchange: rank {rank} would talk to itself")
        assert texts["nobody"] == "exchange: there is no rank 2; got 2; expected 0 to 1"
        assert texts["root"].startswith("broadcast: there is no rank -1; got -1; expected 0 to 1")
        assert "torch.int16; expected float32, bfloat16" in texts["dtype"]
        assert texts["verb"].startswith("'allreduce' cannot be started; expected exchange, barrier, all_reduce")
        assert "all_gather: the sizes do not fit 2 ranks" in texts["sizes"]
        assert "the tensor is elsewhere; got meta; expected cpu" in texts["device"]


# Ends


def late_in_a_collective(comm):
    group = comm.subset([0, 1, 2])
    group.timeout_s = 0.3
    if comm.rank == 1:
        while not group.ended:  # until the others have given up
            time.sleep(0.01)
        return refused(Aborted, lambda: group.all_reduce(torch.ones(2)))
    return refused((Deadline, Aborted), lambda: group.all_reduce(torch.ones(2)))


def test_a_deadline_names_who_has_not_come(processes):
    texts = processes(3).run(late_in_a_collective)
    first = min(texts, key=len)
    assert first in [f"rank {r} waited 0.3 s in all_reduce: of 3 ranks [1] have not come" for r in (0, 2)]
    assert texts[1] in texts[::2]


def late_in_an_exchange(comm, way):
    group, big = comm.subset([0, 1]), torch.ones(1 << 20)
    group.timeout_s = 0.3
    if comm.rank == 0:
        ends = ([], [(big, 1)]) if way == "receive" else ([(big, 1)], [])
        return refused(Deadline, lambda: group.exchange(*ends))
    while not group.ended:
        time.sleep(0.01)
    return refused(Aborted, lambda: group.exchange([], [(big, 0)]))


@pytest.mark.parametrize(("way", "what"), [("receive", "nothing came from rank 1"), ("send", "rank 1 took nothing")])
def test_a_deadline_names_the_peer(processes, way, what):
    text = f"rank 0 waited 0.3 s in exchange: {what}"
    assert processes(2).run(late_in_an_exchange, way) == [text, text]


def freed(comm, where):
    """Rank 0 aborts once the others wait; a subset's end leaves the world alone."""
    group = comm.subset(range(comm.size))
    waits = {
        "all_reduce": lambda: group.all_reduce(torch.ones(1 << 20)),
        "exchange": lambda: group.exchange([], [(torch.empty(4), (comm.rank + 1) % comm.size)]),
        "started": lambda: group.start("barrier").wait(),
    }
    if comm.rank == 0:
        comm.exchange([], [(torch.empty(1), peer) for peer in range(1, comm.size)])
        group.abort("enough, said rank 0")
        texts = [refused(Aborted, wait) for wait in waits.values()]
    else:
        comm.exchange([(torch.ones(1), 0)], [])
        begun_s = time.perf_counter()
        texts = [refused(Aborted, waits[where]), refused(Aborted, group.barrier)]
        assert time.perf_counter() - begun_s < 10  # of the 30 s that a wait may last
    comm.barrier()
    return set(texts), group.ended


@pytest.mark.parametrize("where", ["all_reduce", "exchange", "started"])
def test_an_abort_frees_everybody_and_says_why(processes, where):
    reason = "enough, said rank 0"
    assert processes(4).run(freed, where) == [({reason}, reason)] * 4


def alone_in_a_subset(comm):
    """Rank 0 says that it goes there, and goes; rank 1 hears it, and ends the group instead."""
    group, token = comm.subset(range(2)), torch.zeros(1)
    if comm.rank == 1:
        comm.exchange([], [(token, 0)])
        return group.abort("rank 1 does not come")
    begun_s, work = time.perf_counter(), comm.start("exchange", [(token, 1)], [])
    text = refused(Aborted, lambda: group.subset([1, 0]))
    work.wait()
    assert time.perf_counter() - begun_s < 10  # of the 30 s that a wait may last
    return text


def test_who_waits_for_others_to_come_into_a_subset_is_freed(processes):
    assert processes(2).run(alone_in_a_subset) == ["rank 1 does not come", None]


def test_an_ended_subset_is_made_anew_when_asked_for(processes):
    def again(comm):
        first = comm.subset([0, 1])
        first.abort("tried")
        comm.barrier()
        second, x = comm.subset([0, 1]), torch.ones(1)
        second.all_reduce(x)
        return first is second, x.item()

    assert processes(2).run(again) == [(False, 2.0)] * 2


def quick_to_end(comm):
    """Rank 1 ends each group as soon as it has it, while the others may not have asked for it yet."""
    texts = []
    for turn in range(6):
        group = comm.subset([2, 0, 1])
        if comm.rank == 1:
            group.abort(f"turn {turn}")
        texts.append(refused(Aborted, group.barrier))
        comm.barrier()
    return texts


def test_all_are_given_the_same_group_however_early_it_ends(processes):
    assert processes(3).run(quick_to_end) == [[f"turn {turn}" for turn in range(6)]] * 3


def test_a_rank_that_raises_frees_its_peers_and_the_group_lives_on(processes):
    def fails(comm):
        if comm.rank == 1:
            raise ValueError("boom")
        comm.all_reduce(torch.ones(1))

    pids = processes(3).run(lambda comm: os.getpid())
    with pytest.raises(RankError, match="rank 1 failed first: ValueError: boom") as caught:
        processes(3).run(fails)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "rank 0: Aborted: rank 1 raised ValueError: boom" in caught.value.details
    assert processes(3).run(lambda comm: os.getpid()) == pids
