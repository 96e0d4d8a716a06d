"""A watched run writes down the real chunks of each rank after each exchange, and gives what it gives unwatched."""

import torch

from lt_core.base import Trace
from lt_core.base.records import Mark
from lt_core.collectives import all_reduce, chunk_table, naive, ring, run


def watched(comm, schedule, elements):
    x = (torch.arange(elements, dtype=torch.float64) + 1) * 10.0**comm.rank
    trace = Trace("watched")
    result = all_reduce(comm, x, schedule(comm.size), trace, watch=chunk_table)
    assert torch.equal(result, all_reduce(comm, x, schedule(comm.size)))
    return trace.marks, result.tolist()


def notes(marks):
    return [(m.value["round"], m.value["actions"], m.value["table"]) for m in marks]


def test_a_ring_of_two_from_start_to_end(ranks):
    """Two elements a rank, 1 2 and 10 20: rank r adds chunk r + 1, then each copies what the other has."""
    (first, _), (second, _) = ranks(2).run(watched, ring.schedule, 2)
    assert notes(first) == [
        (-1, [], [[1.0], [2.0]]),
        (0, ["0SEND0>1", "1ADD0<1"], [[1.0], [22.0]]),
        (1, ["1SEND1>1", "0COPY1<1"], [[11.0], [22.0]]),
    ]
    assert notes(second) == [
        (-1, [], [[10.0], [20.0]]),
        (0, ["1SEND0>0", "0ADD0<0"], [[11.0], [20.0]]),
        (1, ["0SEND1>0", "1COPY1<0"], [[11.0], [22.0]]),
    ]
    assert all(m.kind == "chunk table" and m.rank == 1 for m in second)
    assert [m.at_s for m in second] == sorted(m.at_s for m in second)


def test_a_rank_has_marks_only_of_rounds_in_which_it_does_something(ranks):
    marks = [notes(m) for m, _ in ranks(3).run(watched, naive.schedule, 3)]
    assert [[number for number, *_ in mine] for mine in marks] == [[-1, 0, 1, 2, 3], [-1, 0, 2], [-1, 1, 3]]
    assert marks[0][2] == (1, ["0ADD1<2*3"], [[111.0], [222.0], [333.0]])


def test_what_moves_nothing_is_no_message_and_long_chunks_are_cut(ranks):
    """One element on two ranks: chunk 0 is empty, so only chunk 1 travels. Forty: a chunk of 20 shows its first 8."""
    for marks, result in ranks(2).run(watched, ring.schedule, 1):
        assert [len(actions) for _, actions, _ in notes(marks)] == [0, 1, 1]
        assert marks[-1].value["table"] == [[], [11.0]] and result == [11.0]
    for marks, result in ranks(2).run(watched, ring.schedule, 40):
        assert marks[-1].value["elements"] == 40
        assert marks[-1].value["table"] == [result[:8], result[20:28]]


def moved(machine, actions):
    return Mark(machine.comm.rank, 0.0, "moved", len(actions))


def own(comm):
    trace = Trace("own")
    run(comm, torch.ones(3), ring.schedule(comm.size), trace, watch=moved)
    return [(m.kind, m.value) for m in trace.marks]


def test_any_function_can_watch(ranks):
    assert ranks(2).run(own) == [[("moved", 0), ("moved", 2), ("moved", 2)]] * 2
