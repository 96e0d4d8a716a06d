"""A Gantt shows each span where and when it was, in its kind's fill, and says the same in words."""

import pytest

from lt_core.base import Span, Trace, UserError
from lt_core.views import gantt
from tests.views.traces import pipeline, ring


def bars(figure, name):
    (trace,) = (t for t in figure.figure.data if t.name == name)
    return trace


def lanes(figure):
    return dict(zip(figure.figure.layout.yaxis.tickvals, figure.figure.layout.yaxis.ticktext))


def where(figure, name):
    """(lane, start, length, text) of each bar of a kind."""
    t, labels = bars(figure, name), lanes(figure)
    return [(labels[y], at, length, text) for y, at, length, text in zip(t.y, t.base, t.x, t.text)]


def test_nothing_happened():
    figure = gantt(Trace("empty"))
    assert len(figure.figure.data) == 0 and figure.words == "empty: nothing happened."


def test_no_trace_at_all():
    with pytest.raises(UserError, match="a Gantt of nothing; expected at least one Trace"):
        gantt()


def test_a_bar_stands_where_its_span_was():
    spans = [Span(2, "out", "1SEND0>3", 0.5, 0.75, 4096), Span(2, "in", "0ADD0<1*2", 1.0, 1.5)]
    figure = gantt(Trace("two", spans))
    assert where(figure, "send") == [("rank 2 out", 0.0, 0.25, "1")]  # time starts with the first span
    assert where(figure, "receive and add") == [("rank 2 in", 0.5, 0.5, "0–1")]
    hover = "rank 2 out<br>1SEND0&gt;3: send a chunk<br>starts at 0 s, lasts 250 ms<br>4,096 bytes"
    assert bars(figure, "send").hovertext == (hover,)


def test_what_takes_no_time_has_no_bar_and_no_place_in_the_legend():
    spans = [Span(0, "compute", "0F0", 0.0, 1.0), Span(1, "compute", "0U0", 1.0, 1.0)]
    figure = gantt(Trace("an instant", spans, clock="simulated"))
    assert [t.name for t in figure.figure.data] == [bars(figure, "forward").name] and len(lanes(figure)) == 2


@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_ring_has_a_lane_a_stream_and_a_fill_a_kind(size):
    figure = gantt(ring(size))
    assert [t.name for t in figure.figure.data] == ["send", "receive and add", "receive a copy"]
    assert [len(t.x) for t in figure.figure.data] == [2 * size * (size - 1), size * (size - 1), size * (size - 1)]
    assert list(lanes(figure).values()) == [f"rank {r} {s}" for r in range(size) for s in ("out", "in")]
    assert figure.figure.layout.height == round(64 + 72 + 36 * (2 * size + 0.25 * (size - 1)))
    assert list(lanes(figure)) == sorted(lanes(figure))  # from top to bottom on an axis that runs down
    assert figure.figure.layout.yaxis.range[1] == 0


def test_a_pipeline_has_a_lane_a_rank_and_counts_micro_batches():
    figure = gantt(pipeline())
    assert list(lanes(figure).values()) == ["rank 0", "rank 1"]
    assert [text for *_, text in where(figure, "forward")] == ["0", "1", "0", "1"]
    assert [text for *_, text in where(figure, "update")] == ["U0", "U0"]
    assert figure.figure.layout.height == 64 + 72 + 2 * 36


def test_backward_and_weights_are_two_fills():
    figure = gantt(pipeline(split=True))
    assert [t.name for t in figure.figure.data] == ["forward", "backward", "weights", "update"]
    assert bars(figure, "backward").marker.pattern.shape == "\\"
    assert bars(figure, "weights").marker.pattern.shape == "x"


def test_a_text_over_hatch_has_a_white_edge():
    figure = gantt(pipeline(split=True))
    shadows = {name: bars(figure, name).textfont.shadow for name in ("forward", "backward", "update")}
    assert shadows.pop("backward").count("#FFFFFF") == 8 and set(shadows.values()) == {"none"}


def test_verbs_that_share_a_fill_keep_their_letter_and_stages_their_number():
    spans = [Span(0, "compute", name, i, i + 1.0) for i, name in enumerate(["0C0", "0N1", "0F2"])]
    assert [text for *_, text in where(gantt(Trace("remat", spans)), "forward")] == ["C0", "N1", "2"]
    spans = [Span(0, "compute", name, i, i + 1.0) for i, name in enumerate(["0F0", "2F0"])]
    assert [text for *_, text in where(gantt(Trace("interleaved", spans)), "forward")] == ["0F0", "2F0"]


def test_a_span_that_is_no_action_is_drawn_by_its_name():
    figure = gantt(Trace("free", [Span(0, "compute", "load <data>", 0.0, 1.0)]))
    assert where(figure, "work") == [("rank 0", 0.0, 1.0, "load &lt;data&gt;")]


def test_plain_words_are_filled_by_what_their_stream_is_for_and_waiting_looks_like_waiting():
    spans = [Span(0, "compute", "work", 0.0, 1.0), Span(0, "out", "waiting for rank 1", 1.0, 3.0)]
    spans += [Span(0, "out", "all_reduce", 3.0, 4.0), Span(0, "d2h", "copy back", 4.0, 5.0)]
    figure = gantt(Trace("sum", spans), one_lane=True)
    assert [t.name for t in figure.figure.data] == ["work", "collective", "other", "waiting"]
    assert list(lanes(figure).values()) == ["rank 0"]
    assert where(figure, "waiting") == [("rank 0", 1.0, 2.0, "waiting for rank 1")]
    assert where(figure, "collective") == [("rank 0", 3.0, 1.0, "all_reduce")]


def test_a_span_that_is_named_as_a_kind_looks_like_it():
    spans = [Span(0, "compute", "forward", 0.0, 1.0), Span(0, "compute", "backward", 1.0, 3.0)]
    assert [t.name for t in gantt(Trace("step", spans)).figure.data] == ["forward", "backward"]


def test_one_lane_a_rank_has_gaps_only_where_no_stream_is_busy():
    spans = [Span(0, "compute", "work", 0.0, 1.0), Span(0, "out", "all_reduce", 2.0, 3.0)]
    figure = gantt(Trace("sum", [*spans, Span(1, "compute", "work", 0.0, 3.0)]), one_lane=True, waiting=True)
    assert list(lanes(figure).values()) == ["rank 0", "rank 1"]
    assert where(figure, "waiting") == [("rank 0", 1.0, 1.0, "")]
    assert bars(figure, "waiting").hovertext[0] == "rank 0 waits<br>from 1 s for 1 s"


def test_what_takes_no_time_gets_no_lane():
    spans = [Span(0, "compute", "0F0", 0.0, 1.0), Span(0, "free", "0FREE0", 1.0, 1.0)]
    assert list(lanes(gantt(Trace("remat", spans))).values()) == ["rank 0"]


def test_waiting_fills_what_is_between_the_bars():
    figure = gantt(pipeline(), waiting=True)
    assert where(figure, "waiting") == [("rank 0", 2.0, 1.0, ""), ("rank 1", 0.0, 1.0, "")]
    assert bars(figure, "waiting").hovertext[0] == "rank 0 compute waits<br>from 2 s for 1 s"


def test_streams_can_be_chosen():
    figure = gantt(ring(3), streams=["in"])
    assert list(lanes(figure).values()) == ["rank 0", "rank 1", "rank 2"]
    assert "Drawn: in." in figure.words
    with pytest.raises(UserError, match="no span on compute; expected some of in, out"):
        gantt(ring(3), streams=["compute"])


def test_time_is_in_the_unit_that_fits():
    def suffix(trace, **how):
        return gantt(trace, **how).figure.layout.xaxis.ticksuffix

    assert [suffix(ring(2, seconds=s)) for s in (3.0, 3e-3, 3e-6, 3e-9)] == [" s", " ms", " us", " ns"]
    assert suffix(ring(2, seconds=1.0), unit="ticks") == " ticks"
    assert "it takes 2 ticks" in gantt(ring(2, seconds=1.0), unit="ticks").words


def test_two_traces_stand_on_one_axis():
    slow = ring(2, seconds=3e-3, clock="measured").shifted(100.0)
    figure = gantt(ring(2), slow)
    assert [a.text for a in figure.figure.layout.annotations] == [
        "<b>ring, simulated</b>",
        "<b>ring, measured over gloo</b>",
    ]
    assert [at for *_, at, _, _ in where(figure, "receive a copy")] == [
        1.0,
        1.0,
        3.0,
        3.0,
    ]  # ms, each from its own zero
    assert figure.figure.layout.title.text == "ring: simulated 2 ms, measured 6 ms"
    assert figure.figure.layout.title.subtitle.text == "each from its own start"
    assert figure.times.endswith("The last takes 3 times as long as the first.")
    assert figure.figure.layout.height == round(64 + 72 + 36 * (2 * 4 + 2 * 0.25 + 2 * 0.8))


def test_many_bars_lose_their_borders_not_their_lanes():
    spans = [Span(r, "compute", f"{r}F{k}", k * 1e-3, (k + 1) * 1e-3) for r in range(8) for k in range(200)]
    figure = gantt(Trace("long", spans))
    assert bars(figure, "forward").marker.line.width == 0 and len(bars(figure, "forward").x) == 1600
    assert bars(gantt(ring(4)), "send").marker.line.width == 1


def test_title_and_line_below_come_from_the_trace_or_the_author():
    layout = gantt(ring(4, clock="measured")).figure.layout
    assert (layout.title.text, layout.title.subtitle.text) == ("ring on 4 ranks takes 6 ms", "measured over gloo")
    figure = gantt(ring(4), title="Nobody waits", under="wire: office")
    assert (figure.title, figure.figure.layout.title.subtitle.text) == ("Nobody waits", "wire: office")
    assert figure.words.startswith("Nobody waits. ring: 4 ranks, 48 actions")
    assert len(gantt(Trace("many words " * 20, ring(2).spans)).title) <= 60


def test_words_come_from_the_trace():
    small, large = gantt(ring(4)), gantt(ring(8, chunk_bytes=4096, seconds=2e-3))
    assert "4 ranks, 48 actions (24 on in, 24 on out), simulated. Each rank sends 6,144 bytes." in small.words
    assert "8 ranks, 224 actions (112 on in, 112 on out), simulated. Each rank sends 57,344 bytes." in large.words
    assert "it takes 6 ms" in small.words and "it takes 28 ms" in large.words
    assert small.words != large.words


def test_measured_seconds_stand_apart():
    quick, slow = gantt(ring(4, clock="measured")), gantt(ring(4, seconds=2e-3, clock="measured"))
    assert quick.words == slow.words
    assert quick.times == "Measured, it takes 6 ms; of that, rank 0's out is busy 100%."
    assert slow.times != quick.times


def test_idle_lanes_are_named():
    spans = [Span(0, "compute", "0F0", 0.0, 4.0), Span(1, "compute", "1F0", 1.0, 2.0)]
    figure = gantt(Trace("uneven", spans, clock="emulated x0.01"))
    assert figure.times == (
        "Emulated x0.01, it takes 4 s; of that, rank 0's compute is busy 100%, rank 1's compute 25%."
    )
