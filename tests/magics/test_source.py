"""Objects of the kernel as lines of a script: what the lines make is the same thing, or they are refused by name."""

import math

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.magics.source import sources


def made(**given):
    names = {"torch": torch}
    exec("\n".join(sources(given)), names)
    return [names[name] for name in given]


@pytest.mark.parametrize("value", [3, -2.5, 1e-300, "a'\n\"", b"\0", None, True, [1, (2,), {3}], {"a": {1: [None]}}])
def test_plain_values(value):
    (same,) = made(x=value)
    assert same == value and type(same) is type(value)


def test_modules_come_by_import():
    assert made(math=math, m=math) == [math, math]
    assert sources({"math": math, "m": math, "torch": torch}) == ["import math", "import math as m"]


SCALE = 3


def scaled(x):
    return x * SCALE + math.floor(1.5)


def twice(x):
    """Calls another one."""
    return [scaled(part) for part in (x, x)]


def factorial(n):
    return n * factorial(n - 1) if n else 1


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def test_functions_bring_what_they_use():
    (same,) = made(f=twice)
    assert same is not twice and same(2) == twice(2) == [7, 7]
    assert "import math" in sources({"f": twice}) and "SCALE = 3" in sources({"f": twice})


def test_functions_may_call_themselves_and_each_other():
    assert made(factorial=factorial)[0](5) == 120 and made(even=even)[0](7) is False


def of_another(x):
    return x.SCALE


def test_an_attribute_is_no_global():
    (line,) = sources({"f": of_another})
    assert "SCALE = 3" not in line and made(f=of_another)[0](type("X", (), {"SCALE": 5})) == 5


def closed(n):
    return lambda x: x + n


def uses_a_tensor():
    return WEIGHTS


def uses_rank():
    return rank  # noqa: F821


WEIGHTS = torch.ones(2)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.ones(2), "--save cannot write x; got a Tensor; expected a plain value, a function, a module"),
        (float("nan"), "--save cannot write x; got a float"),
        (closed(2), "--save cannot write x; got a function"),
        (object(), "--save cannot write x; got a object"),
        (uses_a_tensor, "--save cannot write WEIGHTS; got a Tensor"),
    ],
)
def test_what_cannot_be_written_is_named(value, words):
    with pytest.raises(UserError) as caught:
        sources({"x": value})
    assert str(caught.value).startswith(words)


def test_a_function_that_uses_the_kernels_own_rank(monkeypatch):
    monkeypatch.setitem(uses_rank.__globals__, "rank", 5)
    with pytest.raises(
        UserError, match="--save: a script has its own rank; got a function that uses the kernel's rank"
    ):
        sources({"f": uses_rank})
