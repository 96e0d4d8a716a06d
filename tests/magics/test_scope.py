"""`{x}` and `$x` in the line stand for the kernel's variables, `--in` picks them; an unknown name is an error."""

import pytest

from lt_core.base.errors import UserError
from lt_core.magics.scope import expanded, picked


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("-n", "-n"),
        ("{x}", "3"),
        ("$x", "3"),
        ("{ x }-$x.{wire}", "3-3.1 Gbit/s 0.1 ms"),
        ("$$x", "$x"),
        ("{{x}}", "{x}"),
        ("$größe", "7"),
        ("50%", "50%"),
    ],
)
def test_braces_and_dollars_stand_for_values(word, value):
    assert expanded(word, {"x": 3, "wire": "1 Gbit/s 0.1 ms", "größe": 7}) == value


@pytest.mark.parametrize("word", ["{undefined}", "$undefined", "{x}{undefined}"])
def test_an_unknown_name_is_an_error(word):
    """With IPython's own expansion one unknown name left the whole line as it was, without a word."""
    with pytest.raises(UserError, match="the kernel has no variable 'undefined'; try: set it first"):
        expanded(word, {"x": 3})


@pytest.mark.parametrize("word", ["{3}", "{}", "{x.y}", "{x + 1}", "$", "$3", "a{", "}"])
def test_what_is_no_name_is_an_error(word):
    """With IPython's own expansion `{3}` silently became `3`."""
    with pytest.raises(UserError, match=r"stands for nothing; expected a variable's name, as \{x\} or \$x; try: "):
        expanded(word, {"x": 3})


def test_in_picks_objects_not_texts():
    f = sum
    assert picked(("f", "x"), {"f": f, "x": [1], "y": 2}) == {"f": f, "x": [1]}


def test_in_names_what_is_not_there():
    with pytest.raises(UserError, match="--in y: the kernel has no variable 'y'; try: run the cell that makes it"):
        picked(("x", "y"), {"x": 1})
