"""Clause 7: the kernel's objects reach every rank by name, and a rank's come back, by rank; what cannot is named."""

import threading

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.comm.group import wire

pytestmark = pytest.mark.processes


def test_objects_reach_every_rank_and_come_back(cell):
    given = {"x": torch.arange(3.0), "settings": {"lr": 0.1, "name": "ü"}}
    seen = cell("y = x * (rank + 1)\nboth = (settings['name'], y.sum().item())", given=given, wanted=("y", "both"))
    assert seen.outcome.outs["both"] == [("ü", 3.0), ("ü", 6.0)]
    assert [y.tolist() for y in seen.outcome.outs["y"]] == [[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]
    assert cell("x.tolist()").values[1] == "[0.0, 1.0, 2.0]"  # it stays


def test_functions_and_classes_of_other_cells_go_both_ways(cell):
    """accelerate#3925: what a notebook's cell defines was not found in the processes."""
    names: dict = {"__name__": "__main__"}
    exec("import math\nfactor = 3\ndef scale(v): return math.floor(v * factor)\nclass Box:\n    inside = 5", names)
    exec("def by(k):\n    def times(v): return k * scale(v)\n    return times\nthrice = by(3)", names)
    given = {"thrice": names["thrice"], "Box": names["Box"], "twice": lambda v: 2 * v}
    text = "class Made:\n    def __init__(self, v): self.v = v\nmade = Made(twice(thrice(1.5)) + Box().inside)"
    seen = cell(text, given=given, wanted=("made",))
    assert [made.v for made in seen.outcome.outs["made"]] == [29, 29]


def test_ranks_change_their_own_copy(cell):
    mine = [1]
    cell("mine.append(rank)", given={"mine": mine})
    assert mine == [1] and cell("mine").values == {0: "[1, 0]", 1: "[1, 1]"}


def test_outs_are_by_rank_of_those_that_ran(cell):
    assert cell("z = rank", ranks=(1,), wanted=("z",)).outcome.outs == {"z": [1]}


class Answers(dict):
    """Settings by attribute, as many write them."""

    __getattr__ = dict.__getitem__


@pytest.mark.parametrize("held", [{"lr": 0.1}, {"lr": 0.1, "nbytes": "many"}])
def test_an_object_may_answer_to_any_name(cell, held):
    """It was asked for its size, and its KeyError was the cell's."""
    assert cell("settings['lr']", given={"settings": Answers(held)}).values[1] == "0.1"


def test_an_object_that_cannot_be_sent_is_named_before_anything_runs(cell):
    seen = cell("print('never')", given={"fine": 1, "lock": threading.Lock()})
    assert isinstance(seen.error, UserError) and seen.lines == []
    assert str(seen.error).startswith("--in lock cannot be sent to another process")
    assert "got a _thread.lock" in str(seen.error)
    assert cell("'fine' in dir()").values[0] == "False"


def test_an_object_that_cannot_come_back_is_named(cell):
    seen = cell("import threading\nkept = 1\nlock = threading.Lock()", wanted=("lock",))
    assert seen.error.kind == "UserError"
    assert seen.error.message.startswith("--out lock cannot be sent to another process")
    assert "got a _thread.lock" in seen.error.message
    assert cell("kept").values == {0: "1", 1: "1"}


def test_a_name_that_nobody_made_is_said(cell):
    seen = cell("if rank: half = 1", wanted=("half",))
    assert seen.error.rank == 0
    assert seen.error.message == (
        "--out half: this rank has no variable 'half'; expected a name that the cell sets; try: half = ... on all ranks"
    )


class Big:
    """As large as it says, for what looks at sizes before it looks inside."""

    nbytes = 3 << 30

    def __reduce__(self):
        raise AssertionError("it was to be refused unread")


def test_too_much_is_refused_with_its_size(cell, monkeypatch):
    seen = cell("1", given={"big": Big()})
    assert str(seen.error) == (
        "--in big, a Big, is too large to be sent; got 3.22 GB; expected at most 1 GiB; try: a file that both can read"
    )
    out = cell("big = torch.empty((1 << 30) + 1, dtype=torch.uint8) if rank == 0 else 0", wanted=("big",))
    assert out.error.rank == 0
    assert out.error.message.startswith("--out big, a Tensor, is too large to be sent; got 1.07 GB")
    assert wire.CAP_BYTES > 1 << 30


def test_ten_megabytes_arrive_whole(cell):
    x = torch.arange(10_000_000, dtype=torch.uint8)
    seen = cell(
        "same = bool((x == torch.arange(10_000_000, dtype=torch.uint8)).all())\ny = x", given={"x": x}, wanted=("y",)
    )
    assert all(torch.equal(y, x) for y in seen.outcome.outs["y"]) and cell("same").values[0] == "True"
    cell("del x, y")
