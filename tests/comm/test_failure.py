"""The first culprit is found among its consequences, and told with its own lines."""

import linecache
import pickle

import pytest

from lt_core.base.errors import Aborted
from lt_core.comm import failure


def raised(make):
    """The exception that `make()` raises."""
    with pytest.raises(BaseException) as caught:
        make()
    return caught.value


def of(rank, at_s, error):
    return failure.of_exception(rank, at_s, error)


def closed():
    raise RuntimeError("[pair.cc:553] Connection closed by peer [127.0.0.1]:2114")


def test_the_clock_decides_among_own_errors():
    late, early = of(0, 2.0, ValueError("late")), of(1, 1.0, KeyError("early"))
    assert failure.first([late, early]) is early


@pytest.mark.parametrize("consequence", [Aborted("rank 1 raised"), ConnectionResetError(), raised(closed)])
@pytest.mark.parametrize("own", [of(1, 2.0, ValueError("own")), failure.of_death(1, 2.0, -9, "")])
def test_a_consequence_never_comes_before_an_own_error_or_a_death(consequence, own):
    assert failure.first([of(0, 1.0, consequence), own]) is own


def test_what_was_made_of_a_consequence_is_one():
    def translate():
        try:
            closed()
        except RuntimeError as error:
            raise ValueError("the loss could not be summed") from error

    assert of(0, 1.0, raised(translate)).consequence


def test_with_consequences_alone_the_first_of_them_is_told():
    told = failure.error([of(1, 2.0, Aborted("b")), of(0, 1.0, Aborted("a"))])
    assert (told.rank, told.kind, told.message) == (0, "Aborted", "a")


def test_the_error_carries_its_cause_its_lines_and_what_followed():
    def inner():
        raise ValueError("boom-ü")

    cause = raised(inner)
    sent = [pickle.loads(pickle.dumps(f)) for f in (of(2, 1.0, cause), of(0, 2.0, Aborted("rank 2 raised")))]
    told = failure.error(sent)
    assert isinstance(told.__cause__, ValueError) and told.__cause__.args == ("boom-ü",)
    assert str(told).startswith("rank 2 failed first: ValueError: boom-ü\nTraceback (most recent call last):\n")
    assert 'raise ValueError("boom-ü")' in told.details
    assert told.details.endswith("what followed:\n  rank 0: Aborted: rank 2 raised")


def test_the_lines_of_a_cell_are_found_where_the_cell_is():
    """A rank has the function, not its source: that stands in the notebook, with the launching process."""
    text = "def f():\n    raise ValueError('in a cell')\n"
    names = {}
    exec(compile(text, "<cell 5>", "exec"), names)
    sent = pickle.loads(pickle.dumps(of(0, 1.0, raised(names["f"]))))
    linecache.cache["<cell 5>"] = (len(text), None, text.splitlines(True), "<cell 5>")
    assert "raise ValueError('in a cell')" in failure.error([sent]).details
    del linecache.cache["<cell 5>"]


def test_how_errors_led_to_another_is_told():
    def both():
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904

    details = failure.error([of(0, 1.0, raised(both))]).details
    first, link, second = (
        details.index(text) for text in ("KeyError: 'first'", "During handling", "ValueError: second")
    )
    assert first < link < second


def test_a_script_that_gave_up_is_an_own_error():
    told = failure.error([of(0, 1.0, SystemExit(3))])
    assert (told.kind, told.message, type(told.__cause__)) == ("SystemExit", "3", SystemExit)


def test_an_exception_that_cannot_be_pickled_still_says_what_it_is():
    class Stubborn(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} {two}")

    told = failure.error([of(0, 1.0, Stubborn(1, 2))])
    assert (told.kind, told.message, told.__cause__) == ("Stubborn", "1 2", None)


@pytest.mark.parametrize(
    ("code", "last_words", "message"),
    [
        (-9, "", "signal 9 (SIGKILL)"),
        (-6, "terminate called", "signal 6 (SIGABRT); its last line: terminate called"),
        (-34, "", "signal 34 (SIGRTMIN)"),
        (-40, "", "signal 40 (real-time)"),
        (7, "", "exit code 7"),
        (0, "", "exit code 0"),
        (None, "", "nobody knows how"),
    ],
)
def test_a_death_says_how(code, last_words, message):
    assert str(failure.error([failure.of_death(3, 1.0, code, last_words)])) == f"rank 3 failed first: died: {message}"


def test_what_followed_is_told_in_an_order_that_does_not_depend_on_chance():
    own = [of(0, 3.0, ValueError("third")), of(3, 2.0, ValueError("second")), of(5, 1.0, ValueError("first"))]
    told = failure.error([of(2, 1.5, Aborted("a")), of(1, 1.6, Aborted("a")), *own])
    followed = told.details.partition("what followed:\n")[2].splitlines()
    assert [line.split(":")[0].strip() for line in followed] == ["rank 3", "rank 0", "rank 1", "rank 2"]
