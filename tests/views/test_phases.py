"""What is read from a recorded run: its values, who sent what, what is finished, of any rounds; and its words."""

import pytest
import torch

from lt_core.base import Action, Mark, Op, Trace, UserError
from lt_core.collectives import naive, of_rounds, ring
from lt_core.collectives.rounds import ADD, COPY, Message
from lt_core.views import stepper, steps
from lt_core.views.chunk_words import number_text
from lt_core.views.phases import Message as Took
from lt_core.views.phases import phases
from tests.views.recorded import recorded


def test_phases_hold_the_values_of_the_run_and_its_messages():
    found = phases(recorded(ring.schedule(2)))
    assert (found.ranks, found.chunks, found.elements) == (2, 2, 2)
    assert [p.round for p in found.phases] == [-1, 0, 1]
    assert found.phases[1].messages == (Took(0, 1, 0, 1, ADD), Took(1, 0, 1, 1, ADD))
    assert found.phases[1].values == {(0, 0): (1,), (0, 1): (22,), (1, 0): (11,), (1, 1): (20,)}
    assert [found.finished(k) for k in range(3)] == [set(), {(0, 1), (1, 0)}, {(0, 0), (0, 1), (1, 0), (1, 1)}]


def test_naive_gathers_everything_on_one_rank():
    words = steps(recorded(naive.schedule(3), 6), add="reduce", copy="broadcast").words
    assert words == (
        "naive: 3 ranks, 6 elements in 3 chunks, 4 rounds. Reduce, rounds 0 to 1, 2 messages. "
        "After round 1 rank 0 owns every finished chunk, 111 …, 333 …, 555 …. Broadcast, rounds 2 to 3, 2 messages. "
        "After round 3 every rank owns every finished chunk, the same on every rank: 111 …, 333 …, 555 …."
    )


def doubling(size):
    """Everyone exchanges everything with a partner 1, 2, 4 ... away."""
    steps = [[Message(r, r ^ d, 0, ADD, size) for r in range(size)] for d in (1, 2)]
    return of_rounds("doubling", size, steps)


def test_any_schedule_of_rounds_can_be_stepped_through():
    words = steps(recorded(doubling(4))).words
    assert words.startswith("doubling: 4 ranks, 4 elements in 4 chunks, 2 rounds. Add, rounds 0 to 1, 8 messages.")
    assert words.endswith(
        "After round 1 every rank owns every finished chunk, the same on every rank: 1,111, 2,222, 3,333, 4,444."
    )


def test_a_collective_that_leaves_its_parts_scattered_is_finished_where_they_are_whole():
    half = of_rounds("reduce-scatter", 3, list(ring.once_round(3, ADD, 0)))
    found = phases(recorded(half))
    assert found.finished(2) == {(0, 1), (1, 2), (2, 0)}
    assert (
        "After round 1 rank 0 owns chunk 1 = 222, rank 1 owns chunk 2 = 333, rank 2 owns chunk 0 = 111."
        in steps(recorded(half)).words
    )


def test_a_part_that_was_added_twice_is_named():
    wrong = of_rounds("wrong", 2, [[Message(1, 0, 0, ADD)], [Message(1, 0, 0, ADD)], [Message(0, 1, 0, COPY)]])
    words = steps(recorded(wrong, 1)).words
    assert words.endswith("the same on every rank: 21. Chunk 0 holds the part of rank 1 more than once.")


def test_ranks_that_end_with_different_values_are_not_called_the_same():
    """The messages were right and the numbers were not, as where a wire loses something."""
    trace = recorded(ring.schedule(2))
    last = max((m for m in trace.marks if m.rank == 1), key=lambda m: m.at_s)
    last.value["table"][0] = [12]
    assert "but NOT the same on every rank; rank 0 has: 11, 22." in steps(trace).words


def test_the_table_says_the_same_as_the_picture():
    assert steps(recorded(ring.schedule(2))).rows == (
        ("after", "rank", "chunk 0", "chunk 1"),
        ("start", "0", "1", "2"),
        ("start", "1", "10", "20"),
        ("round 0", "0", "1", "22 ✓"),
        ("round 0", "1", "11 ✓", "20"),
        ("round 1", "0", "11 ✓", "22 ✓"),
        ("round 1", "1", "11 ✓", "22 ✓"),
    )


def test_chunks_of_several_elements_and_of_none():
    trace = recorded(ring.schedule(4), 2, torch.float64)
    assert steps(trace).rows[1] == ("start", "0", "–", "1", "–", "2")
    assert steps(trace).words.endswith(
        "After round 5 every rank owns every finished chunk, the same on every rank: –, 1,111, –, 2,222."
    )


def test_numbers_fit_a_cell():
    shown = [number_text(n) for n in (60, 1110.0, -3, 0.123456, 1e9, float("nan"), float("inf"))]
    assert shown == ["60", "1,110", "-3", "0.1235", "1e+09", "nan", "inf"]


def test_words_come_from_the_run():
    first, second = recorded(ring.schedule(2)), recorded(ring.schedule(2), 4)
    assert "owns chunk 1 = 22," in steps(first).words and "owns chunk 1 = 33 …," in steps(second).words


def test_a_saved_run_can_be_stepped_through_later(tmp_path):
    trace = recorded(ring.schedule(3))
    assert steps(Trace.load(trace.save(tmp_path / "ring.jsonl"))).words == steps(trace).words


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ([], "ring has no chunk tables to step through; got 0 of them; try: all_reduce.*watch=chunk_table"),
        ([(0, -1), (0, 0)], "ring: no chunk table of rank 1; try: all_reduce.*on every rank, then Trace.merge"),
        ([(0, -1), (1, -1), (0, 0), (0, -1)], "ring holds more than one run; got 2 starts; expected one Trace a run"),
    ],
)
def test_what_cannot_be_stepped_through_is_refused(marks, message):
    take = str(Action(Op.ADD, 0, 0, 0, 1))
    values = [{"round": k, "actions": [take] if k == 0 else [], "elements": 1, "table": [[1]]} for _, k in marks]
    trace = Trace("ring", marks=[Mark(r, 0.0, "chunk table", v) for (r, _), v in zip(marks, values)])
    with pytest.raises(UserError, match=message):
        stepper(trace)


def test_a_mark_of_another_shape_is_named():
    with pytest.raises(UserError, match="rank 3 left a mark that is no chunk table; got 7"):
        steps(Trace("ring", marks=[Mark(3, 0.0, "chunk table", 7)]))
