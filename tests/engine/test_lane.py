"""A lane becomes items: an exchange is one, it keeps the order of both its streams, and a chain needs no threads."""

import pytest

from lt_core.base.errors import ScheduleError
from lt_core.collectives import naive, ring
from lt_core.engine.lane import is_chain, items
from tests.typed import gpipe, typed


def shown(made):
    return [(str(item), item.worker, item.waits) for item in made]


def test_an_item_waits_for_its_needs_and_for_what_stands_before_it_in_its_stream():
    s = typed("0: 0F0 0OUT0 1F0 1OUT0", {"0OUT0": "0F0", "1OUT0": "1F0"})
    assert shown(items(s, 0)) == [
        ("0F0", "compute", ()), ("0OUT0", "d2h", (0,)), ("1F0", "compute", (0,)), ("1OUT0", "d2h", (1, 2)),
    ]  # fmt: skip


def test_an_exchange_that_sends_is_the_out_workers():
    assert shown(items(ring.schedule(2), 0)) == [
        ("0SEND0>1 + 1ADD0<1", "out", ()), ("1SEND1>1 + 0COPY1<1", "out", (0,)),
    ]  # fmt: skip


def test_a_receive_behind_an_exchange_does_not_overtake_it():
    drawing = "0: 0F0 0SEND0>1 0ADD0<1 1COPY0<1\n1: 0SEND0>0 0ADD0<0 1SEND0>0"
    s = typed(drawing, {"0SEND0>1@0": "0F0", "0ADD0<1": "0F0", "1COPY0<1": ""})
    exchange, lone = items(s, 0)[1:]
    assert (str(exchange), exchange.worker) == ("0SEND0>1 + 0ADD0<1", "out")
    assert (str(lone), lone.worker, lone.waits) == ("1COPY0<1", "in", (1,))


def test_free_waits_for_its_needs_only_and_nothing_waits_for_it():
    s = typed("0: 0F0 0DROP0 1F0 1DROP0 0B0", {"0DROP0": "0B0", "1DROP0": "0F0"})
    assert [(str(i), i.waits) for i in items(s, 0)] == [
        ("0F0", ()), ("0DROP0", (4,)), ("1F0", (0,)), ("1DROP0", (0,)), ("0B0", (2,)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "rank", "chain"),
    [
        (typed("0: 0F0 1F0 0B0"), 0, True),
        (typed("0: 0F0 0DROP0 0B0"), 0, True),
        (ring.schedule(4), 1, True),
        (naive.schedule(4), 0, True),
        (gpipe(2, 1), 0, False),
        (typed("0: 0F0 0OUT0"), 0, False),
        (typed("0:"), 0, True),
    ],
)
def test_what_is_a_chain(schedule, rank, chain):
    assert is_chain(items(schedule, rank)) == chain


@pytest.mark.parametrize(
    "schedule",
    [typed("0: 0F0 0F0"), typed("0: 0F0 0DROP0", {"0F0": "0DROP0", "0DROP0": "0F0"})],
    ids=["twins", "circle"],
)
def test_what_can_never_run_is_said_before_it_starts(schedule):
    with pytest.raises(ScheduleError, match=r"occurs twice|waits for ever"):
        items(schedule, 0)
