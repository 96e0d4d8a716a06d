"""The stepper draws each round of a real run: by slider and buttons, in place, with a twin without a kernel."""

import json

import pytest

from lt_core.base import Op
from lt_core.collectives import doubling, halving, naive, of_rounds, ring
from lt_core.collectives.rounds import ADD, COPY, Message
from lt_core.views import stepper, steps
from lt_core.views.phases import phases
from lt_core.views.stepper import _panel
from tests.views.recorded import recorded, star

NAMES = {Op.ADD: "reduce-scatter", Op.COPY: "all-gather"}


def panel(trace):
    return _panel(phases(trace), NAMES, "measured over threads")


def cells(live, number):
    """(rank, chunk): its text, of the cells that trace `number` draws: 0 held before, 1 added, 2 copied."""
    bars = json.loads(live.picture.figure)["data"][number]
    return {(int(y), round(x + 0.46)): text for x, y, text in zip(bars["base"][1:], bars["y"][1:], bars["text"][1:])}


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


@pytest.mark.parametrize(("size", "elements", "tables"), [(1, 3, 1), (2, 2, 3), (4, 4, 7), (8, 8, 1)])
def test_the_twin_shows_each_phase_or_of_large_tables_the_telling_one(size, elements, tables):
    figure = steps(recorded(ring.schedule(size), elements))
    assert len(figure.figure.layout.annotations) == tables
    assert len(figure.rows) == 1 + tables * size
    assert all(len(row) == 2 + size for row in figure.rows)


def test_of_many_rounds_the_twin_shows_where_each_half_begins_and_ends():
    rounds = [[Message(0, 1, k % 2, ADD if k < 6 else COPY)] for k in range(10)]
    figure = steps(recorded(of_rounds("long", 2, rounds)))
    assert [note.text for note in figure.figure.layout.annotations] == [
        "<b>start</b>", "<b>round 0 add</b>", "<b>round 5 add</b>", "<b>round 9 copy</b>",
    ]  # fmt: skip


def test_where_cells_are_as_narrow_as_numbers_no_arrow_runs_over_them():
    def arrows(size):
        figure = steps(recorded(ring.schedule(size))).figure
        return [trace for trace in figure.data if trace.type == "scatter" and trace.marker.symbol == "arrow"]

    assert len(arrows(4)) == 0 and len(arrows(8)) == 1


@pytest.mark.parametrize(
    ("schedule", "title"),
    [
        (ring.schedule(4), "After 3 of 6 rounds each rank owns one finished chunk"),
        (naive.schedule(3), "After 2 of 4 rounds rank 0 owns every finished chunk"),
        (ring.schedule(1), "Nothing has to move"),
        (halving.schedule(3), "After 2 of 4 rounds 2 of 6 cells are finished"),
        (doubling.schedule(2), "After 1 round each rank owns every finished chunk"),
        (doubling.schedule(4), "After 2 rounds each rank owns every finished chunk"),
        (star(4), "After 1 of 2 rounds each rank owns one finished chunk"),
    ],
    ids=["ring", "star", "alone", "halving", "two", "four", "all to all"],
)
def test_the_twin_s_title_is_what_was_found(schedule, title):
    assert steps(recorded(schedule)).title == title


def test_plain_python_prints_the_words(capsys):
    stepper(recorded(ring.schedule(2)), add="reduce-scatter", copy="all-gather")
    assert capsys.readouterr().out.startswith(
        "ring: 2 ranks, 2 elements in 2 chunks, 2 rounds. Reduce-scatter, round 0,"
    )


def test_several_arrivals_in_one_round_are_all_shown():
    live = panel(recorded(star(3)))
    live.controls["after"].value = 1
    assert cells(live, 1)[0, 0] == '<b>111</b><br><span style="font-size:11px">+10 +100</span>'
    assert "1 + 10 + 100 = 111" in live.picture.text


def test_a_cell_shows_the_first_of_its_elements():
    long = panel(recorded(ring.schedule(2), 5))
    assert cells(long, 0)[0, 0] == "1 …"
    assert "a cell shows the first of its 3 elements" in long.picture.figure
