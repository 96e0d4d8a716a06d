"""The line that is named is the learner's own: the innermost one that is neither ours, nor torch's, nor Python's."""

import functools
import statistics

import torch

from lt_core.teaching.checks import place
from lt_core.teaching.checks.exercise import Place


def helper(x):
    return x.view(5, 5)  # <- here


def answer(x):
    """A learner's function."""
    return helper(x)


class Callable:
    """A learner's object that is called."""

    def __call__(self, x):
        return 1 / x


@functools.wraps(answer)
def wrapped(x):
    return answer(x)


def raised(fn, x):
    try:
        fn(x)
    except Exception as error:
        return place.of_traceback(error.__traceback__, fn)
    raise AssertionError("it did not raise")


def test_where_it_was_raised_also_in_a_helper():
    at = raised(answer, torch.ones(3))
    assert place.words(at) == f"your line {at.line}, in helper: return x.view(5, 5)  # <- here"


def test_what_torch_and_python_do_below_is_theirs():
    for fn, x in ((torch.stack, 3), (statistics.mean, [])):
        at = raised(lambda x, fn=fn: fn(x), x)
        assert at.file == __file__ and "at = raised(lambda" in place.words(at)


def test_functions_of_all_kinds():
    begins = {place.of_function(fn) for fn in (answer, wrapped, functools.partial(answer, 1))}
    assert {p.function for p in begins} == {"answer"}
    assert place.of_function(Callable()).function == place.of_function(Callable().__call__).function == "__call__"
    assert place.of_function(len) is None and place.words(None) == ""


def test_a_line_that_cannot_be_read_is_still_numbered():
    assert place.words(Place("<a cell that is gone>", 3, "answer")) == "your line 3, in answer"


def test_a_function_that_was_sent_to_a_process_is_found_in_its_own_file():
    away = Place("<dynamic-code>", 12, "answer")
    assert place.brought_back(away, answer).file == __file__
    assert place.brought_back(away._replace(function="helper"), answer).file == __file__
    unknown = away._replace(function="unknown")
    assert place.brought_back(unknown, answer) == unknown
    assert place.brought_back(None, answer) is None
