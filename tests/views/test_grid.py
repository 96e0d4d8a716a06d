"""A schedule's staircase: each action in its earliest tick, and broken schedules refused."""

import pytest

from lt_core.base import Action, Schedule, ScheduleError
from lt_core.views import grid


def typed(name: str, *lanes: str, needs: dict[str, str] | None = None) -> Schedule:
    """A schedule from text: a lane a rank; needs as "1:2F0" -> "0:2F0"."""
    parsed = tuple(tuple(Action.parse(word, rank) for word in lane.split()) for rank, lane in enumerate(lanes))
    pairs = [[(int(t[0]), t[2:]) for t in pair] for pair in (needs or {}).items()]
    return Schedule(name, parsed, {Action.parse(t, r): (Action.parse(n, q),) for (r, t), (q, n) in pairs})


def cells(figure):
    """{(lane, tick): text}"""
    labels = dict(zip(figure.figure.layout.yaxis.tickvals, figure.figure.layout.yaxis.ticktext))
    return {(labels[y], at): text for t in figure.figure.data for y, at, text in zip(t.y, t.base, t.text)}


PAIR = typed("pair", "0SEND0>1 0COPY1<1", "0ADD0<0 0SEND1>0", needs={"1:0SEND1>0": "1:0ADD0<0"})
PIPELINE = typed("pipeline", "0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1", needs={"1:1F0": "0:0F0", "0:0B0": "1:1B0"})


def test_nothing_to_do():
    figure = grid(Schedule("empty", ((), ()), {}))
    assert figure.words == "empty: 2 ranks and nothing to do." and len(figure.figure.data) == 0


def test_an_action_stands_in_its_earliest_tick():
    assert cells(grid(PIPELINE)) == {
        ("rank 0", 0): "0",
        ("rank 0", 1): "1",
        ("rank 0", 3): "0",
        ("rank 0", 4): "1",
        ("rank 1", 1): "0",
        ("rank 1", 2): "0",
        ("rank 1", 3): "1",
        ("rank 1", 4): "1",
    }


def test_a_transfer_stands_at_both_ends_and_names_the_other():
    assert cells(grid(PAIR)) == {
        ("rank 0 out", 0): "0→1",
        ("rank 1 in", 0): "0←0",
        ("rank 1 out", 1): "0→0",
        ("rank 0 in", 1): "0←1",
    }
    assert [t.name for t in grid(PAIR).figure.data] == ["send", "receive and add", "receive a copy"]


def test_many_columns_keep_short_texts_and_few_numbers():
    lane = " ".join(f"{k}SEND{k}>1" for k in range(40))
    figure = grid(typed("long", lane, lane.replace("SEND", "COPY").replace(">1", "<0")))
    assert cells(figure)["rank 0 out", 39] == "39"
    assert figure.figure.layout.xaxis.ticktext == tuple(str(k) for k in range(0, 40, 3))
    assert figure.figure.layout.xaxis.tickvals[:2] == (0.5, 3.5)
    assert "Rank 0: tick 0 0SEND0>1; " in figure.words and figure.words.endswith("; ... tick 39 39SEND39>1.")


def test_titles():
    figure = grid(PAIR)
    assert figure.title == "pair: 2 ranks, 2 ticks"
    assert figure.figure.layout.title.subtitle.text == "columns are earliest ticks"
    assert grid(PAIR, title="There and back").words.startswith("There and back. pair: 2 ranks")


def test_words_come_from_the_schedule():
    assert grid(PIPELINE).words == (
        "pipeline: 2 ranks, 8 actions in 5 ticks (4 F, 4 B). 2 of 10 cells are empty. "
        "Rank 0: tick 0 0F0; tick 1 0F1; tick 3 0B0; tick 4 0B1."
    )
    assert grid(PAIR).words == (
        "pair: 2 ranks, 4 actions in 2 ticks (2 SEND, 1 ADD, 1 COPY). 4 of 8 cells are empty. "
        "Rank 0: tick 0 0SEND0>1; tick 1 0COPY1<1."
    )


def test_a_schedule_that_cannot_run_is_refused():
    with pytest.raises(ScheduleError, match="0SEND0>1 of rank 0 has no other end on rank 1"):
        grid(typed("lone", "0SEND0>1", ""))
