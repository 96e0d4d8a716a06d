"""The drawing is one output that is updated; what is kept is another one, and nothing else stays."""

import pytest

from lt_core.magics.paper import Output


class Publisher:
    """IPython's door to the page, as it is called."""

    def __init__(self):
        self.calls = []

    def publish(self, data, metadata, transient=None, update=False):
        self.calls.append((data, "update" if update else "new", (transient or {}).get("display_id")))

    def clear_output(self, wait=False):
        self.calls.append(("clear", wait))


@pytest.fixture
def publisher():
    return Publisher()


def texts(publisher):
    return [call[:2] for call in publisher.calls]


def test_without_a_drawing_there_is_one_output(publisher):
    Output(publisher, alone=True).keep("all")
    assert publisher.calls == [({"text/plain": "all"}, "new", None)]


def test_nothing_is_no_output(publisher):
    Output(publisher, alone=True).keep("")
    assert publisher.calls == []


def test_a_drawing_begins_empty_so_that_it_is_never_compared(publisher):
    output = Output(publisher, alone=True)
    output.draw("one")
    output.draw("two")
    assert texts(publisher) == [({}, "new"), ({"text/plain": "one"}, "update"), ({"text/plain": "two"}, "update")]
    assert len({call[2] for call in publisher.calls}) == 1 and publisher.calls[0][2]


@pytest.mark.parametrize(("text", "after"), [("all", [({"text/plain": "all"}, "new")]), ("", [])])
def test_the_drawing_is_cleared_away(publisher, text, after):
    output = Output(publisher, alone=True)
    output.draw("one")
    output.keep(text)
    assert texts(publisher)[2:] == [("clear", bool(text)), *after]


def test_where_other_outputs_stand_only_the_drawing_goes(publisher):
    output = Output(publisher, alone=False)
    output.draw("one")
    output.keep("all")
    assert texts(publisher)[2:] == [({}, "update"), ({"text/plain": "all"}, "new")]
