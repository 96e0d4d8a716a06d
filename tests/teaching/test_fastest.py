"""A choice is right if no other is more than 1 % faster; what is wrong is said with its seconds."""

import pytest
import torch

from lt_core.teaching.checks.exercise import Outcome, Run
from lt_core.teaching.checks.fastest import Fastest, Kind

TAKES_S = {"a": {"cart": 1.0, "van": 2.0}, "b": {"cart": 2.0, "van": 1.01 * 2}, "c": {"cart": 3.0, "van": 0.002}}
CHOICE = Fastest(("cart", "van"), lambda name, question: TAKES_S[question[0]][name], lambda question: question[0])
KIND = Kind("a trip", lambda random, size, elements: [("a",)] * size)


def judged(question, value):
    return CHOICE.is_near(Run(KIND.cases()[0], [(question,)], [Outcome(value)]))


def test_the_fastest_is_right_and_so_is_what_takes_1_percent_longer():
    assert [CHOICE.of((question,)) for question in "abc"] == ["cart", "cart", "van"]
    assert (judged("a", "cart"), judged("b", "cart"), judged("b", "van"), judged("c", "van")) == ("", "", "", "")


@pytest.mark.parametrize(
    ("question", "value", "says"),
    [
        ("a", "van", "a: you say van: 2 s; cart: 1 s"),
        ("c", "cart", "c: you say cart: 3 s; van: 2 ms"),
        ("a", None, "it returned None; one of 'cart', 'van' is wanted"),
        ("a", 1.0, "it returned 1.0; one of 'cart', 'van' is wanted"),
        ("a", torch.ones(2), "it returned tensor([1., 1.]); one of 'cart', 'van' is wanted"),
    ],
)
def test_what_is_wrong_is_said(question, value, says):
    assert judged(question, value) == says


def test_a_kind_comes_after_that_it_is_one_and_after_what_it_names():
    one, first, second = CHOICE.properties("one of two", (KIND, Kind("back", KIND.make, ("a trip",), 3)))
    assert (one.name, one.cases, one.after) == ("one of two", first.cases[:1], ())
    assert (first.name, len(first.cases), first.after) == ("a trip", 8, ("one of two",))
    assert (second.name, len(second.cases), second.after) == ("back", 3, ("one of two", "a trip"))
    assert len({case.elements for case in first.cases}) == 8
