"""Of a notebook only what an exercise needs is run, in its order; and what is handed to `check` is what is graded."""

import ast

import pytest

from lt_core.teaching.grading import cells
from tests.teaching.grading.books import HELPER, IMPORTS, RIGHT, write


def name(text):
    return ast.parse(text, mode="eval").body


@pytest.fixture
def valued(tmp_path):
    """What an expression is after the cells it needs."""

    def value(expression, *sources):
        used, unbound = cells.needed(cells.read(write(tmp_path / "x.ipynb", *sources)), name(expression))
        assert unbound == set()
        return cells.value(used, name(expression))

    return value


def test_a_function_comes_with_what_it_names_and_with_nothing_else(tmp_path):
    code = cells.read(write(tmp_path / "x.ipynb", IMPORTS, HELPER, "x = 1 / 0\nk = p = comm = None", RIGHT, "x"))
    used, unbound = cells.needed(code, name("reduce_scatter"))
    assert [sorted(one.binds) for one in used] == [["torch"], ["bounds"], ["passed"], ["reduce_scatter"]]
    assert unbound == set()


@pytest.mark.parametrize(
    "sources",
    [
        ["def f():\n    return g()", "def g():\n    return 3"],
        ["N = 1", "def f():\n    return N", "N += 2"],
        ["M = 3", "def f(n=M):\n    return n"],
        ["import math as m\nfrom math import *", "def f():\n    return int(floor(m.pi))"],
        ["from functools import partial\ng = lambda n: n\nf = partial(g, 3)"],
        ["class F:\n    n = 3\n    def __call__(self):\n        return self.n\nf = F()"],
        ["for n in range(4):\n    pass\ndef f():\n    return n"],
        ["if True:\n    n = 3\nelse:\n    n = 4\nf = lambda: n"],
        ["def made():\n    global n\n    n = 3\n", "value = made()\n", "f = lambda: (made(), n)[1]"],
        ["def decorated(g):\n    return lambda: 3", "@decorated\ndef f():\n    return 4"],
        ["%load_ext autoreload\n!ls\ndef f():\n    return 3"],
        ["%%time\ndef f():\n    return 3"],
        ["f = lambda: 4", "f = lambda: 3"],
    ],
)
def test_whatever_binds_a_name_that_is_needed_is_run_in_order(valued, sources):
    assert valued("f", *sources)() == 3


@pytest.mark.parametrize("other", ["%%torchrun -n 4\nf = 4", "%%bash\nls", "f = (", "raise SystemExit", "%%html\n<b>"])
def test_cells_of_other_kinds_and_broken_ones_change_nothing(valued, other):
    assert valued("f", "def f():\n    return 3", other)() == 3


def test_a_broken_cell_is_kept_for_who_asks(tmp_path):
    code = cells.read(write(tmp_path / "x.ipynb", "x = 1", "def f(:\n  pass"))
    assert code.unread == (("code cell 2, line 1: invalid syntax", "def f(:\n  pass"),)


@pytest.mark.parametrize("text", ["(" * 5000, "x = '\0'", "x = " + "-" * 5000 + "1", "x = 1 if"])
def test_no_text_is_too_strange(tmp_path, text):
    (unread,) = cells.read(write(tmp_path / "x.ipynb", text)).unread
    assert unread.why.startswith("code cell 1")


@pytest.mark.parametrize(
    "text", ["", "3", "{}", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{"source": 3}]}', "\xff"]
)
def test_what_is_no_notebook_is_a_value_error(tmp_path, text):
    (tmp_path / "x.ipynb").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError):
        cells.read(tmp_path / "x.ipynb")


def test_names_that_nothing_binds_are_told(tmp_path):
    code = cells.read(write(tmp_path / "x.ipynb", "def f():\n    return len(missing) + other"))
    assert cells.needed(code, name("f"))[1] == {"missing", "other"}
    assert cells.needed(code, name("g"))[1] == {"g"}


def test_what_was_handed_to_check_is_graded_whatever_check_is(tmp_path):
    code = cells.read(
        write(
            tmp_path / "x.ipynb",
            "def check(name, fn):\n    print('✔')",
            "check('20.all_reduce', first)",
            "lt.check('20.all_reduce', mine)\ncheck('00.my_sum', lambda comm, x: x)\ncheck(3, x)\ncheck('a')",
        )
    )
    assert {key: ast.unparse(value) for key, value in code.checked.items()} == {
        "20.all_reduce": "mine", "00.my_sum": "lambda comm, x: x",
    }  # fmt: skip


def test_an_error_names_the_cell_and_its_line(valued):
    with pytest.raises(ZeroDivisionError) as raised:
        valued("f", "x = 1", "# a line\nf = 1 / 0")
    last = raised.traceback[-1]
    assert (str(last.frame.code.path), last.lineno + 1) == ("code cell 2", 2)
