"""A check says property by property what holds, whatever it is handed, and never raises for what a function does."""

import pytest
import torch

from lt_core.base import UserError
from lt_core.teaching import check
from lt_core.teaching.checks import EXERCISES
from lt_core.teaching.checks.ring_answers import chunk, once, passed_on, reduce_scatter
from lt_core.teaching.checks.start_answers import who_was_late


def unwritten(comm, x):
    raise NotImplementedError("your turn: reduce_scatter")


def gives(value):
    """An answer that gives the same whatever it is asked."""
    return lambda comm, x: value


def test_a_line_a_property_and_a_verdict(capsys):
    found = check("20.reduce_scatter", reduce_scatter, launch=None)
    assert found.passed and not found.failed and not found.not_yet
    assert capsys.readouterr().out == (
        "✔ returns a tensor like its input\n✔ values\n✔ owner\n✔ any length\n✔ one rank alone\n✔ strided input\n"
        "✔ input untouched\n✔ made of exchanges\n✔ messages\n✔ bytes\n"
        "20.reduce_scatter: passed, all 10 properties hold.\n"
    )


def test_an_exercise_not_yet_written_fails_nothing(capsys):
    found = check("20.reduce_scatter", unwritten, launch=None)
    assert found.not_yet and not found.passed and found.failed == ()
    assert capsys.readouterr().out == (
        "20.reduce_scatter: not yet. Write it, then run this cell again; hint('20.reduce_scatter') helps.\n"
    )


def test_torch_s_own_not_implemented_is_an_error_like_others():
    found = check("20.reduce_scatter", lambda comm, x: torch.linalg.svd(x.bool()), launch=None)
    assert not found.not_yet and found.failed == ("returns a tensor like its input",)


def test_messages_are_explained_by_the_chunk_that_went_twice():
    def answer(comm, x):
        y = x.clone()
        if comm.size == 4:
            passed_on(comm, chunk(y, 3, 4), chunk(y, 3, 4))
        return once(comm, y, 0, add=True)

    lines = {line.name: str(line) for line in check("20.reduce_scatter", answer, launch=None).lines}
    assert lines["messages"] == "✘ messages: 24 elements on 4 ranks: sent 4, the law says 3 (rank 0 sent chunk 3 twice)"


def test_the_owner_is_named():
    found = check("20.reduce_scatter", lambda comm, x: once(comm, x.clone(), -1, add=True), launch=None)
    assert str(found.lines[2]) == (
        "✘ owner: 12 elements on 2 ranks: after the last round rank 1 should own chunk 0, you left it chunk 1"
    )


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "rank 0 returned None (is `return` missing?); float64 (12,) is wanted (your line"),
        (3.5, "rank 0 returned float 3.5; float64 (12,) is wanted"),
        ("x" * 100, "rank 0 returned str 'xxxx"),
        (torch.tensor(1.0), "rank 0 returned float32 (); float64 (12,) is wanted"),
        (torch.ones(12), "rank 0 returned float32 (12,); float64 (12,) is wanted"),
        ([torch.ones(6)] * 2, "rank 0 returned list [tensor("),
    ],
)
def test_what_is_no_answer_is_said_with_the_learner_s_line(value, says):
    found = check("20.reduce_scatter", gives(value), launch=None)
    assert found.failed == ("returns a tensor like its input",) and says in str(found.lines[0])
    assert all(line.holds is None or line.name in found.failed or line.name == "one rank alone" for line in found.lines)


def test_an_exception_is_said_with_the_learner_s_line():
    def answer(comm, x):
        return x.view(comm.rank, -1)  # <- here

    (first, *rest) = check("20.reduce_scatter", answer, launch=None).lines
    assert first.why.startswith("12 elements on 2 ranks: rank 0: RuntimeError: ") and "\n" not in first.why
    assert first.why.endswith(": return x.view(comm.rank, -1)  # <- here)")
    assert {line.holds for line in rest} == {None}


@pytest.mark.parametrize("fn", [lambda x: x, lambda comm, x, y: x, lambda: None])
def test_a_function_of_other_arguments(fn):
    (first, *_) = check("20.reduce_scatter", fn, launch=None).lines
    assert "TypeError" in first.why and "(your line" in first.why and "lambda" in first.why


@pytest.mark.parametrize("thing", [None, 3, torch.ones(3), "reduce_scatter"])
def test_what_is_no_function(thing, capsys):
    found = check("20.reduce_scatter", thing)
    assert found.failed == ("a function",) and not found.passed
    assert "hand over the function itself, without calling it" in capsys.readouterr().out


def test_what_waits_for_others_is_one_line(capsys):
    check("20.reduce_scatter", lambda comm, x: x * comm.size, launch=None)
    out = capsys.readouterr().out
    assert "\n– not judged yet: owner, any length, strided input, bytes\n" in out and out.count("–") == 1


def test_numbers_change_from_call_to_call_and_can_be_drawn_again():
    seen = []

    def answer(comm, x):
        if comm.rank == 0 and x.numel() == 12:
            seen.append(x.clone())
        return x

    first = check("20.reduce_scatter", answer, launch=None)
    check("20.reduce_scatter", answer, launch=None)
    check("20.reduce_scatter", answer, seed=first.seed, launch=None)
    assert not torch.equal(seen[0], seen[1]) and torch.equal(seen[0], seen[2])
    assert f"seed={first.seed}" in first.verdict


def test_what_the_function_prints_is_kept_short_and_comes_after(capsys):
    def answer(comm, x):
        print(f"rank {comm.rank}")
        return x

    found = check("20.reduce_scatter", answer, launch=None)
    out = capsys.readouterr().out
    assert out.startswith("✔ returns a tensor like its input\n") and out.count("\n  rank ") == 8
    assert "your function printed (" in found.printed and "lines more):" in found.printed


def test_a_name_that_is_no_exercise():
    with pytest.raises(
        UserError,
        match=r"no exercise of this name; got '20.x'; expected 00.my_sum, 00.what_to_mend, 00.who_was_late, 20.all",
    ):
        check("20.x", reduce_scatter)


def test_a_notebook_gets_signs_and_words_and_the_record_is_not_shown_twice(displayed):
    found = check("20.reduce_scatter", gives(None), launch=None)
    html = displayed[0]["data"]["text/html"]
    assert (
        "✘ fails</span> returns a tensor like its input: " in html and "– open</span> not judged yet: values, " in html
    )
    assert displayed[0]["data"]["text/plain"] == str(found)
    found._ipython_display_()
    assert len(displayed) == 1


def test_every_exercise_says_how_it_is_called():
    assert {one.name: one.face for one in EXERCISES.values()} == {
        "00.my_sum": "my_sum(comm, x)",
        "00.who_was_late": "who_was_late(trace)",
        "00.what_to_mend": "what_to_mend(p, late_s, sum_s)",
        "20.reduce_scatter": "reduce_scatter(comm, x)",
        "20.all_gather": "all_gather(comm, y)",
        "20.all_reduce": "all_reduce(comm, x)",
        "20.choose": "choose(p, n, wire)",
        "21.average": "average_gradients(model, comm, bucket_bytes)",
        "21.overlap": "overlap(model, comm)",
        "21.pick": "pick(elements, backward_s, p, wire)",
        "22.may_start": "may_start(clocks, rank, slack)",
        "22.eager_round": "eager_round(weights, came, late)",
        "22.step_for": "step_for(workers, curvature)",
        "32.feedback": "feedback(memory, grads, send)",
        "32.top_k": "top_k_mean(comm, x, k)",
        "32.power_sgd": "low_rank_mean(comm, m, rank, memory)",
        "32.pick": "pick(p, wire, seconds)",
    }


@pytest.mark.parametrize("pair", [lambda r, s: (r, s), lambda r, s: [torch.tensor(r), torch.tensor(s).double()]])
def test_two_numbers_may_be_tensors(pair):
    found = check("00.who_was_late", lambda trace: pair(*who_was_late(trace)))
    assert found.passed, str(found)


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (lambda trace: 1 / 0, "✘ two numbers: a trace of 2 ranks: ZeroDivisionError: division by zero (your line"),
        (
            lambda trace: None,
            "✘ two numbers: a trace of 2 ranks: it returned None; two numbers are wanted, (rank, seconds)",
        ),
    ],
)
def test_reading_a_trace_wrongly_speaks_of_traces(fn, says):
    assert str(check("00.who_was_late", fn).lines[0]).startswith(says)
