"""Each rule of a built notebook bites on a notebook that breaks it, and only on that."""

import base64
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from labs.build import normalised
from labs.rules import cell_faults, kind_faults, learner_faults, solution_faults

ROOT = Path(__file__).resolve().parent.parent.parent


def cell(*outputs, tags=(), count=1, source=""):
    return new_code_cell(source, outputs=list(outputs), execution_count=count, metadata={"tags": list(tags)})


def printed(text):
    return new_output("stream", text=text)


def raised(text):
    return new_output("error", ename="ValueError", evalue=text, traceback=[])


def picture(nbytes=0, **metadata):
    data = base64.b64encode(bytes(nbytes)).decode()
    return new_output("display_data", data={"image/png": data}, metadata=metadata)


def live(kind):
    return new_output("display_data", data={f"application/vnd.{kind}+json": {}})


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (cell(tags=["run"]), "tagged run, but it shows nothing"),
        (cell(raised("rank 1 left")), "it raised, but is not tagged raises-exception"),
        (cell(tags=["raises-exception"]), "tagged raises-exception, but it did not raise"),
        (cell(picture()), "a picture without alt text"),
        (cell(picture(60_001)), "a picture of 60,001 bytes, at most 60,000: fewer points, or smaller"),
        (cell(live("jupyter.widget-view")), "it stores a widget, which shows nothing without its kernel"),
        (cell(live("plotly.v1")), "it stores a plotly figure, which many readers cannot draw: store a picture of it"),
        (cell(printed("<object object at 0x7f0a1b2c3d>")), "its output names at 0x7f0a1b2c3d"),
        (cell(printed("2 ranks over gloo, processes 41210, 41211")), "its output names processes 41210"),
        (cell(printed("torchrun meets on port 29500")), "its output names port 29500"),
        (cell(printed(f"HBox(model_id='{'3f' * 16}')")), "its output names 3f3f3f"),
        (cell(printed(f"File {ROOT}/labs/build.py")), f"its output names {ROOT}"),
        (cell(raised(f"{ROOT} is full"), tags=["raises-exception"]), f"its output names {ROOT}"),
    ],
)
def test_a_cell_that_breaks_a_rule_is_named(bad, fault):
    assert [found for found in cell_faults(bad) if found.startswith(fault)]


def test_good_cells_break_no_rule():
    good = [
        cell(printed("4"), tags=["run"]),
        cell(picture(60_000, **{"image/png": {"alt": "4 lanes"}}), tags=["see"], count=2, source="1" * 71),
        cell(raised("rank 1 left"), tags=["raises-exception"], count=3),
    ]
    assert list(solution_faults(new_notebook(cells=good))) == []


@pytest.mark.parametrize(
    ("cells", "metadata", "fault"),
    [
        ([cell(count=2)], {}, "the execution counts are not 1, 2, 3, ..."),
        ([cell(source="x\n" + "1" * 72)], {}, "code cell 1: line 2 has 72 characters, at most 71 do not scroll"),
        ([cell()], {"widgets": {}}, "widget state is stored: one figure's makes 5 MB"),
        ([cell(printed("x" * 400_000))], {}, "bytes, at most 400,000: fewer or smaller pictures"),
    ],
)
def test_a_solution_that_breaks_a_rule_says_which(cells, metadata, fault):
    assert [found for found in solution_faults(new_notebook(cells=cells, metadata=metadata)) if fault in found]


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (new_markdown_cell("Ask who holds chunk 2.", metadata={"tags": ["teacher"]}), "cell 0 is for teachers"),
        (cell(printed("4"), count=None), "cell 0 was executed: learners get it fresh"),
        (cell(source="### END SOLUTION", count=None), "cell 0 holds a solution or its marker"),
        (cell(source="1" * 72, count=None), "cell 0: line 1 has 72 characters, at most 71 do not scroll sideways"),
    ],
)
def test_what_a_learner_must_not_get_is_named(bad, fault):
    assert list(learner_faults(new_notebook(cells=[bad]))) == [fault]


def test_a_learner_may_write_wide_prose():
    assert list(learner_faults(new_notebook(cells=[new_markdown_cell("x" * 200)]))) == []


def test_a_drawing_is_as_large_as_its_text():
    drawn = new_output("display_data", data={"image/svg+xml": "<svg/>" * 10_001})
    assert list(kind_faults(drawn)) == ["a picture of 60,006 bytes, at most 60,000: fewer points, or smaller"]


def test_a_stream_in_pieces_is_one_output_and_widgets_leave_no_trace():
    widget = new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {"model_id": "3f"}})
    outputs = list(normalised([printed("four "), printed("ranks"), widget, printed("one sum")], 1))
    assert [output.text for output in outputs] == ["four ranks", "one sum"]
