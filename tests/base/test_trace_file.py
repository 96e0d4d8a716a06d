"""A trace comes back from disk equal; what cannot be written or read is said, and no half a file is left."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lt_core.base.action import Action
from lt_core.base.errors import UserError
from lt_core.base.trace import Level, Mark, Span, Trace
from lt_core.engine.costs import Unit
from lt_core.engine.simulate import simulate
from tests.typed import gpipe

words = st.text(max_size=8)
seconds = st.floats(allow_nan=False)
spans = st.builds(
    lambda rank, stream, name, start_s, end_s, nbytes, action, run: Span(
        rank, stream, name, start_s, end_s, nbytes, action and action._replace(rank=rank), run
    ),
    st.integers(0, 9), words, words, seconds, seconds, st.integers(0),
    st.none() | st.sampled_from(list(gpipe(2, 2).actions())), words,
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words, lambda v: st.lists(v) | st.dictionaries(words, v)
)
levels = st.builds(Level, st.integers(0, 9), seconds, words, st.integers(0), words)
marks = st.builds(Mark, st.integers(0, 9), seconds, words, values)
traces = st.builds(Trace, words, st.lists(spans), st.lists(levels), st.lists(marks), words, words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


@settings(max_examples=40)
@given(traces)
def test_what_was_saved_is_loaded(folder, trace):
    assert Trace.load(trace.save(folder / "one.jsonl")) == trace


def test_a_simulation_comes_back_with_its_actions(tmp_path):
    trace = simulate(gpipe(3, 2), Unit(by={"F": 1.0, "B": 2.0}, alpha=0.25, kept={"F": 7, "B": -7}))
    again = Trace.load(trace.save(tmp_path / "t.jsonl"))
    assert again == trace and all(isinstance(s.action, Action) for s in again.spans)


def test_one_line_a_record_and_the_header_first(tmp_path):
    path = Trace("t", [Span(0, "out", "x", 0.5, 1.0)], marks=[Mark(0, 0.0, "scale", math.inf)]).save(
        tmp_path / "t.jsonl"
    )
    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == {"trace": 1, "name": "t", "clock": "measured", "backend": ""}
    assert [json.loads(line)[0] for line in lines[1:]] == ["span", "mark"]
    assert Trace.load(path).marks[0].value == math.inf


def test_a_place_that_cannot_be_written(tmp_path):
    place = tmp_path / "no" / "t.jsonl"
    with pytest.raises(UserError) as caught:
        Trace("t").save(place)
    assert (
        str(caught.value)
        == f"{place} was not written; got No such file or directory; try: another folder, or free space"
    )


def test_a_full_disk_leaves_the_old_file_and_no_half_one(tmp_path, monkeypatch):
    path = Trace("old").save(tmp_path / "t.jsonl")

    def full(self, lines):
        raise OSError(28, "No space left on device")

    real = type(path).open

    def open_(self, mode="r", **how):
        file = real(self, mode, **how)
        return file if "w" not in mode else _Full(file)

    class _Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def writelines(self, lines):
            self.file.write(next(iter(lines)))
            full(self, lines)

    monkeypatch.setattr(type(path), "open", open_)
    with pytest.raises(UserError, match="was not written; got No space left on device"):
        Trace("new").save(path)
    monkeypatch.undo()
    assert Trace.load(path).name == "old" and [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]


@pytest.mark.parametrize("content", ["", "not json", "{}", '{"trace": 2}', "[1]", "\x00"])
def test_what_is_no_trace(tmp_path, content):
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=r"t.jsonl is no trace; got .*; expected a file that Trace.save wrote"):
        Trace.load(path)
    with pytest.raises(UserError, match="is no trace"):
        Trace.load(tmp_path / "absent.jsonl")


@pytest.mark.parametrize("line", ['["span", 1]', '["what"]', "[", "[]", '["span",0,"s","n",0,1,0,"no action",""]', "7"])
def test_the_line_that_cannot_be_read_is_named(tmp_path, line):
    path = Trace("t", [Span(0, "out", "x", 0.0, 1.0)]).save(tmp_path / "t.jsonl")
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(UserError, match=r"t.jsonl line 3 cannot be read"):
        Trace.load(path)


def test_chrome_events():
    trace = Trace(
        "t", [Span(1, "out", "x", 0.001, 0.003, 80)], [Level(1, 0.5, "activations", 9)], [Mark(1, 0.25, "k", 3)]
    )
    events = trace.to_chrome()["traceEvents"]
    assert [(e["ph"], e["name"], e["pid"]) for e in events] == [
        ("M", "process_name", 1), ("M", "thread_name", 1), ("X", "x", 1), ("C", "activations", 1), ("i", "k", 1),
    ]  # fmt: skip
    assert (events[2]["ts"], events[2]["dur"], events[2]["args"]["bytes"]) == (1000.0, 2000.0, 80)
    assert events[3]["args"] == {"bytes": 9} and events[4]["args"] == {"value": 3}
    assert json.loads(json.dumps(trace.to_chrome()))["otherData"] == {"name": "t"}


def test_chrome_counts_each_module_for_itself():
    """All of an owner's modules wrote one counter, which showed whichever came last."""
    levels = [
        Level(0, 0.5, "gradients", 8, "fc1"),
        Level(0, 0.6, "gradients", 4, "fc2"),
        Level(0, 0.7, "gradients", 12),
    ]
    events = Trace("t", [], levels).to_chrome()["traceEvents"]
    counted = [(e["name"], e["args"]["bytes"]) for e in events]
    assert counted == [("gradients: fc1", 8), ("gradients: fc2", 4), ("gradients", 12)]


def test_chrome_keeps_the_streams_of_a_rank_apart():
    trace = simulate(gpipe(2, 2), Unit(by={"F": 1.0, "B": 1.0}))
    events = [e for e in trace.to_chrome()["traceEvents"] if e["ph"] == "X"]
    rows = {(e["pid"], e["tid"]) for e in events}
    assert len(events) == len(trace.spans) and len(rows) == len({(s.rank, s.stream) for s in trace.spans})
