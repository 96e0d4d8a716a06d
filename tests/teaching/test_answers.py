"""Every checker accepts right answers of different shape, and refuses each known wrong one by the property named.

Each property has a wrong answer which fails that property alone, so none of them is there for nothing.
"""

import pytest

from lt_core.teaching import check
from lt_core.teaching.checks import (
    EXERCISES,
    choice_answers,
    compress_answers,
    compress_wrong,
    here,
    replicas_answers,
    replicas_wrong,
    ring_answers,
    ring_wrong,
    stale_answers,
    stale_wrong,
    start_answers,
    start_wrong,
)

RIGHT = {
    **start_answers.RIGHT,
    **ring_answers.RIGHT,
    **choice_answers.RIGHT,
    **replicas_answers.RIGHT,
    **stale_answers.RIGHT,
    **compress_answers.RIGHT,
}
WRONG = {
    **start_wrong.WRONG,
    **ring_wrong.WRONG,
    **choice_answers.WRONG,
    **replicas_wrong.WRONG,
    **stale_wrong.WRONG,
    **compress_wrong.WRONG,
}
REAL = "real processes"
ON_THREADS = [(name, answer) for name in WRONG for answer in WRONG[name] if answer.refused_by != REAL]
HANG = {"all send first", "waits for a flag"}
ON_PROCESSES = [(name, answer) for name in WRONG for answer in WRONG[name] if answer.refused_by == REAL]


def named(pairs):
    return [f"{name}-{answer.label}" for name, answer in pairs]


def on(ranks):
    """A launch on the warm ranks."""
    return lambda fn, size, *args: ranks(size).run(fn, *args)


@pytest.mark.parametrize(("name", "fn"), [(name, fn) for name in RIGHT for fn in RIGHT[name]])
def test_right_answers_of_different_shape_pass(name, fn, ranks):
    found = check(name, fn, launch=on(ranks))
    assert found.passed, str(found)
    assert (len(found.lines) == len(EXERCISES[name].properties) + 1) == bool(EXERCISES[name].real)


@pytest.mark.parametrize(("name", "answer"), ON_THREADS, ids=named(ON_THREADS))
def test_a_wrong_answer_is_refused_by_the_property_named_for_it(name, answer, monkeypatch):
    if answer.thought in HANG:  # then it need not be waited for long
        monkeypatch.setattr(here, "WAIT_S", 0.2)
        monkeypatch.setattr(here, "WHOLE_S", 0.5)
    found = check(name, answer.fn, launch=None)
    assert answer.refused_by in found.failed, str(found)
    assert not answer.alone or found.failed == (answer.refused_by,), str(found)
    assert all(line.why for line in found.lines if not line.holds)


@pytest.mark.parametrize(("name", "answer"), ON_PROCESSES, ids=named(ON_PROCESSES))
def test_what_only_threads_can_do_is_refused_by_real_processes(name, answer, ranks):
    on_threads_alone = ranks(1).backend == "threads"
    found = check(name, answer.fn, launch=None if on_threads_alone else on(ranks))
    assert found.passed if on_threads_alone else found.failed == (REAL,), str(found)


@pytest.mark.parametrize("name", sorted(EXERCISES))
def test_each_property_is_the_only_one_to_refuse_some_answer(name):
    alone = {answer.refused_by for answer in WRONG[name] if answer.alone}
    assert alone == {one.name for one in EXERCISES[name].properties} | ({REAL} if EXERCISES[name].real else set())


@pytest.mark.parametrize("name", sorted({name[:2] for name in EXERCISES}))
def test_a_lab_s_first_exercise_has_at_least_six_wrong_answers_and_two_right_ones(name):
    first = next(one for one in EXERCISES if one.startswith(name))
    assert len(WRONG[first]) >= 6 and len(RIGHT[first]) >= 2
