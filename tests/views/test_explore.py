"""A slider moves a figure in place, one line says each change and each error, and without a kernel a twin stands."""

import json
import sys

import numpy as np
import plotly.graph_objects as go
import pytest

from lt_core.base import UserError
from lt_core.views import Figure, explore
from lt_core.views.controls import control, label, options, place, text
from lt_core.views.panel import WIDGET, Panel
from lt_core.views.picture import _library
from lt_core.views.show import PLOTLY


def build(ranks, wire="office"):
    fig = go.Figure(go.Bar(x=[12 / ranks]), layout={"title": {"text": f"{wire} &lt; {ranks}"}})
    return Figure(fig, f"Each of {ranks} ranks holds {12 // ranks}.", "It took 3 ms.")


def panel(ranges, fn=build, **how):
    several = {name: options(name, values) for name, values in ranges.items()}
    controls = {name: control(name, values) for name, values in several.items()}
    return Panel(fn, controls, fn(**{**place(several, {}), **how}))


def test_values_as_a_person_reads_them():
    shown = [text(v) for v in (110_000, 0.25, 1e-05, np.int64(7), True, "ring", None)]
    assert shown == ["110,000", "0.25", "1e-05", "7", "yes", "ring", "None"]


@pytest.mark.parametrize(
    ("values", "kind", "first", "moved", "shown"),
    [
        (range(2, 9), "IntSlider", 2, 8, "8"),
        (range(8, 0, -2), "IntSlider", 8, 4, "4"),
        ([1_000, 10_000], "SelectionSlider", 1_000, 10_000, "10,000"),
        (np.array([0.5, 0.25]), "SelectionSlider", 0.5, 0.25, "0.25"),
        (["ring", "tree"], "Dropdown", "ring", "tree", "tree"),
        ({"office": (1, 2), "kitchen": (3, 4)}, "Dropdown", (1, 2), (3, 4), "kitchen"),
        (bool, "Checkbox", False, True, "yes"),
    ],
)
def test_the_type_of_a_range_chooses_the_control(values, kind, first, moved, shown):
    widget = control("the_size", options("the_size", values))
    assert (type(widget).__name__, widget.value, widget.description) == (kind, first, "the size")
    widget.value = moved
    assert widget.value == moved and label(widget) == shown


def test_a_unit_stands_behind_the_name_of_a_parameter():
    names = ["latency_us", "rate_gbit_per_s", "sum_s", "backward_ms", "distance_costs", "ranks", "powers_of_two", "s"]
    assert [control(name, options(name, [1, 2])).description for name in names] == [
        "latency, µs", "rate, Gbit/s", "sum, s", "backward, ms", "distance costs", "ranks", "powers of two", "s"
    ]  # fmt: skip


@pytest.mark.parametrize("values", [[], range(0), {}, "ring", 7, int])
def test_a_range_without_values_is_refused(values):
    with pytest.raises(UserError, match=r"ranks has nothing to choose from.*expected range"):
        explore(build, ranks=values)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"rank": 2}, "found: there is no parameter rank; expected some of ranks, wire"),
        ({"ranks": 9}, r"found: ranks is never 9; expected one of range\(2, 5\)"),
        ({"wire": "rack"}, "found: wire is never rack; expected one of office, kitchen"),
    ],
)
def test_a_place_that_no_control_reaches_is_refused(found, message):
    with pytest.raises(UserError, match=message):
        explore(build, found=found, ranks=range(2, 5), wire=["office", "kitchen"])


def test_a_control_moved_moves_the_figure_and_is_said():
    live = panel({"ranks": range(2, 5), "wire": ["office", "kitchen"]})
    assert live.picture.text == "Each of 2 ranks holds 6. It took 3 ms."
    live.controls["wire"].value = "kitchen"
    assert live.picture.text == "wire: kitchen. Each of 2 ranks holds 6. It took 3 ms."
    assert live.picture.title == "kitchen < 2"
    live.controls["ranks"].value = 4
    assert json.loads(live.picture.figure)["data"][0]["x"] == [3.0]
    assert live.picture.text == "Each of 4 ranks holds 3. It took 3 ms."


@pytest.mark.parametrize(
    ("words", "value", "said"),
    [
        ("128 ranks, 1.0%: top-k takes 1.28 x. 7", 128, "128 ranks,"),
        ("The ring, 7. Of 1,128 and 12 8", 128, "n: 128. The"),
        ("It is 0.128 or 128.5", 128, "n: 128. It"), ("At last 128.", 128, "At last"), ("s = 128: fast", 128, "s = "),
        ("Up to 1,128 of 128,000.", 128, "n: 128. Up"),
    ],
)  # fmt: skip
def test_what_the_words_begin_with_is_not_said_twice(words, value, said):
    live = panel({"n": [1, value]}, lambda n: Figure(go.Figure(), words))
    live.controls["n"].value = value
    assert live.picture.text.startswith(said)


def test_a_change_reaches_the_page_in_one_message():
    live, sent = panel({"ranks": range(2, 5)}), []
    live.picture._send = lambda message, buffers=None: sent.append(message)
    live.controls["ranks"].value = 3
    assert [set(message["state"]) for message in sent] == [{"figure", "title", "text"}]


def test_an_error_is_said_and_the_picture_stays():
    live = panel({"ranks": range(3, -1, -1)})
    live.controls["ranks"].value = 1
    before = live.picture.figure
    live.controls["ranks"].value = 0
    assert live.picture.failed and live.picture.figure == before
    assert live.picture.text.startswith("✘ ranks: 0. ZeroDivisionError: division by zero (line ")
    assert live.picture.text.endswith(" of build). The picture is the one before.")
    live.controls["ranks"].value = 2
    assert not live.picture.failed and live.picture.text.startswith("Each of 2 ranks")


def test_an_error_at_the_start_leaves_the_twin():
    live = panel({"ranks": range(3)}, ranks=2)
    assert live.picture.failed and json.loads(live.picture.figure)["data"][0]["x"] == [6.0]


def test_what_is_no_figure_with_words_is_said():
    live = panel({"ranks": range(2, 5)})
    live.build = lambda ranks: go.Figure()
    live.controls["ranks"].value = 3
    assert "UserError: a figure without words" in live.picture.text


def test_plain_python_prints_the_words_of_the_place_found(capsys):
    explore(build, found={"ranks": 3}, ranks=range(2, 5))
    assert capsys.readouterr().out == "At ranks: 3. Each of 3 ranks holds 4. It took 3 ms.\n"


def test_the_words_of_the_place_found_say_where_it_is(capsys):
    ranges = {"ranks": range(2, 5), "wire": {"office": "o", "kitchen": "k"}, "far_us": [5, 1_000], "costs": bool}
    explore(lambda ranks, wire, far_us, costs: build(ranks, wire), {"ranks": 4, "wire": "k", "costs": True}, **ranges)
    assert capsys.readouterr().out.startswith("At ranks: 4; wire: kitchen; far, µs: 5; costs: yes. Each of 4 ranks")


def test_an_error_of_build_at_the_place_found_is_raised():
    with pytest.raises(ZeroDivisionError):
        explore(build, ranks=range(3))


def test_a_notebook_gets_one_bundle_and_the_words_below(displayed):
    explore(build, found={"ranks": 4}, ranks=range(2, 5))
    (data, metadata), (below, _) = [(output["data"], output["metadata"]) for output in displayed]
    assert set(data) == {WIDGET, PLOTLY, "text/plain"}
    assert data["text/plain"] == "At ranks: 4. Each of 4 ranks holds 3."  # exact, and of the place found
    assert data[PLOTLY]["data"][0]["x"] == [3.0]
    assert metadata == {"image/png": {"alt": "At ranks: 4. Each of 4 ranks holds 3.", "width": 860}}
    assert "<summary>In words: the place to find</summary>" in below["text/html"]


def test_without_ipywidgets_the_twin_stands_alone(displayed, monkeypatch, capsys):
    """A lab stopped at its first slider where widgets were absent."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # as if it were not installed
    explore(build, ranks=range(2, 5))
    assert [set(output["data"]) for output in displayed] == [{PLOTLY, "text/plain"}, {"text/html"}]
    assert capsys.readouterr().out.startswith("no sliders: they need ipywidgets")


def test_plotly_js_is_sent_once_for_all_pictures():
    first, second = panel({"ranks": range(2, 5)}), panel({"ranks": range(2, 5)})
    assert _library() is _library() and b"plotly.js v" in _library().source[:200]
    assert all(len(json.dumps(p.picture.get_state(), default=str)) < 20_000 for p in (first, second))
