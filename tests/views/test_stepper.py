"""The stepper shows what a real run recorded: values, messages, what is finished; of any rounds, not one ring."""

import json

import pytest
import torch

from lt_core import launch
from lt_core.base import Action, Mark, Op, Trace, UserError
from lt_core.collectives import all_reduce, chunk_table, naive, of_rounds, ring
from lt_core.collectives.rounds import ADD, COPY, Message
from lt_core.views import stepper, steps
from lt_core.views.chunk_words import number_text
from lt_core.views.phases import Message as Took
from lt_core.views.phases import phases
from lt_core.views.stepper import _panel

NAMES = {Op.ADD: "reduce-scatter", Op.COPY: "all-gather"}


def record(comm, schedule, elements, dtype):
    trace = Trace(schedule.name, backend=comm.backend)
    x = torch.arange(1, elements + 1, dtype=dtype) * 10**comm.rank
    all_reduce(comm, x, schedule, trace, watch=chunk_table)
    return trace


def recorded(schedule, elements=None, dtype=torch.int64):
    """A real run on threads: rank r brings 1 2 3 ... times 10**r."""
    return Trace.merge(
        launch(record, schedule.size, schedule, elements or schedule.size, dtype, backend="threads", timeout_s=20)
    )


def panel(trace):
    return _panel(phases(trace), NAMES, "measured over threads")


def cells(live, number):
    """(rank, chunk): its text, of the cells that trace `number` draws: 0 held before, 1 added, 2 copied."""
    bars = json.loads(live.picture.figure)["data"][number]
    return {(int(y), round(x + 0.46)): text for x, y, text in zip(bars["base"][1:], bars["y"][1:], bars["text"][1:])}


def test_phases_hold_the_values_of_the_run_and_its_messages():
    found = phases(recorded(ring.schedule(2)))
    assert (found.ranks, found.chunks, found.elements) == (2, 2, 2)
    assert [p.round for p in found.phases] == [-1, 0, 1]
    assert found.phases[1].messages == (Took(0, 1, 0, 1, ADD), Took(1, 0, 1, 1, ADD))
    assert found.phases[1].values == {(0, 0): (1,), (0, 1): (22,), (1, 0): (11,), (1, 1): (20,)}
    assert [found.finished(k) for k in range(3)] == [set(), {(0, 1), (1, 0)}, {(0, 0), (0, 1), (1, 0), (1, 1)}]


def test_after_its_first_half_a_ring_leaves_each_rank_one_finished_chunk():
    live = panel(recorded(ring.schedule(4)))
    live.controls["after"].value = 3  # after round 2
    assert cells(live, 1) == {
        (0, 1): '<b>2,222</b><br><span style="font-size:11px">+2,220</span>',
        (1, 2): '<b>3,333</b><br><span style="font-size:11px">+3,303</span>',
        (2, 3): '<b>4,444</b><br><span style="font-size:11px">+4,044</span>',
        (3, 0): '<b>1,111</b><br><span style="font-size:11px">+111</span>',
    }
    assert len(cells(live, 0)) == 12 and not cells(live, 2)
    assert live.picture.title == "Round 2, reduce-scatter: 4 of 16 cells are finished"
    assert live.picture.text.startswith(
        "After round 2, reduce-scatter: rank 0 sends chunk 2 to rank 1, 30 + 3,303 = 3,333"
    )
    assert live.picture.text.count(", finished") == 4


def test_finished_cells_have_a_bold_border_and_copies_another_fill_and_letter():
    live = panel(recorded(ring.schedule(4)))
    live.controls["after"].value = 4
    held, added, copied = json.loads(live.picture.figure)["data"][:3]
    assert set(cells(live, 2).values()) == {
        f'<b>{v}</b><br><span style="font-size:11px">copy</span>' for v in ("1,111", "2,222", "3,333", "4,444")
    }
    assert (
        copied["marker"]["line"]["width"][1:] == [3] * 4 and sorted(held["marker"]["line"]["width"][1:]).count(3) == 4
    )
    assert added["marker"]["pattern"]["shape"] == "/" and copied["marker"]["pattern"]["shape"] == ""
    assert added["marker"]["color"] != copied["marker"]["color"]
    assert (added["name"], copied["name"]) == ("reduce-scatter: receive and add", "all-gather: receive a copy")


def test_arrows_run_from_sender_to_receiver():
    live = panel(recorded(ring.schedule(3)))
    live.controls["after"].value = 1
    arrows = json.loads(live.picture.figure)["data"][5]
    ends = {(round(a), round(b)) for a, b in zip(arrows["y"][::3], arrows["y"][1::3])}
    assert ends == {(0, 1), (1, 2), (2, 0)}
    assert arrows["marker"]["symbol"] == "arrow"


def test_buttons_step_and_stop_at_the_ends():
    live = panel(recorded(ring.schedule(2)))
    slider, back, step = live.box.children[0].children
    assert (back.description, step.description) == ("◀ back", "step ▶")
    back.click()
    seen = [slider.label]
    for _ in range(4):
        step.click()
        seen.append(slider.label)
    assert seen == ["start", "round 0", "round 1", "round 1", "round 1"]
    back.click()
    assert slider.label == "round 0" and live.picture.text.startswith("After round 0, reduce-scatter:")


def test_every_phase_is_drawn_of_the_same_traces():
    """So one picture becomes the next in place."""
    live = panel(recorded(ring.schedule(4)))
    shapes = []
    for _, number in live.controls["after"].options:
        live.controls["after"].value = number
        figure = json.loads(live.picture.figure)
        shapes.append(([t["type"] for t in figure["data"]], figure["layout"]["height"], len(figure["data"][3]["x"])))
    assert len(shapes) == 7 and all(shape == shapes[0] for shape in shapes)


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


def star(size):
    """Each rank sums one chunk: all others send it theirs in one round."""
    pairs = [(r, q) for r in range(size) for q in range(size) if r != q]
    return of_rounds(
        "star", size, [[Message(r, q, q, ADD) for r, q in pairs], [Message(q, r, q, COPY) for r, q in pairs]]
    )


def test_any_schedule_of_rounds_can_be_stepped_through():
    words = steps(recorded(doubling(4))).words
    assert words.startswith("doubling: 4 ranks, 4 elements in 4 chunks, 2 rounds. Add, rounds 0 to 1, 8 messages.")
    assert words.endswith(
        "After round 1 every rank owns every finished chunk, the same on every rank: 1,111, 2,222, 3,333, 4,444."
    )
    live = panel(recorded(star(3)))
    live.controls["after"].value = 1
    assert cells(live, 1)[0, 0] == '<b>111</b><br><span style="font-size:11px">+10 +100</span>'
    assert "1 + 10 + 100 = 111" in live.picture.text


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


@pytest.mark.parametrize(("size", "elements", "tables"), [(1, 3, 1), (2, 2, 3), (4, 4, 7), (8, 8, 3)])
def test_the_twin_shows_all_phases_or_the_telling_ones(size, elements, tables):
    figure = steps(recorded(ring.schedule(size), elements))
    assert len(figure.figure.layout.annotations) == tables
    assert len(figure.rows) == 1 + tables * size
    assert all(len(row) == 2 + size for row in figure.rows)


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
    long = panel(recorded(ring.schedule(2), 5))
    assert cells(long, 0)[0, 0] == "1 …"
    assert "a cell shows the first of its 3 elements" in long.picture.figure


def test_numbers_fit_a_cell():
    shown = [number_text(n) for n in (60, 1110.0, -3, 0.123456, 1e9, float("nan"), float("inf"))]
    assert shown == ["60", "1,110", "-3", "0.1235", "1e+09", "nan", "inf"]


def test_words_come_from_the_run():
    first, second = recorded(ring.schedule(2)), recorded(ring.schedule(2), 4)
    assert "owns chunk 1 = 22," in steps(first).words and "owns chunk 1 = 33 …," in steps(second).words


def test_plain_python_prints_the_words(capsys):
    stepper(recorded(ring.schedule(2)), add="reduce-scatter", copy="all-gather")
    assert capsys.readouterr().out.startswith(
        "ring: 2 ranks, 2 elements in 2 chunks, 2 rounds. Reduce-scatter, round 0,"
    )


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
