"""A cell's text is code, and the value of its last expression, however the two are told apart."""

import marshal

import pytest

from lt_core.comm.group.source import _by_line, _by_tree, compiled

BY_LINE = [
    "5", "\n\n5\n\n", "x = 1\nx", "def f(a):\n    return a\n\nf(7)  # seven", "import math\n\n\nmath.pi\n",
    "if True:\n    y = 2\n(y,\\\n)\ny", "s = '''a\n'''\ns", "'doc'\n__doc__", "[1, 2][0]", "x = 1\n+ 5", "f'{3!r}'",
]  # fmt: skip
BY_TREE = [
    "", "x = 5", "5;", "x = 1; x", "if True:\n    z = 1\n    5", "s = '''\n5\n'''", "x = 5 \\\n+ 1", "(1 +\n2)",
    "t = 1,\n*t, 2", "5\n# the end", "x = 1\r\nx", "for i in range(3):\n    pass\nelse:\n    i", "5 \n  ",
    "5  # and so on;",
]  # fmt: skip


def run(parts):
    names = {}
    body, last = parts
    exec(body, names)
    value = eval(last, names) if last else None
    return value, sorted(name for name in names if name != "__builtins__")


@pytest.mark.parametrize("text", BY_LINE)
def test_the_last_line_tells_what_the_tree_tells(text):
    by_line, by_tree = _by_line(text, "<cell 1>"), _by_tree(text, "<cell 1>")
    assert by_line == by_tree, "lines and names of the code too"
    below = _by_line(f"\n\n{text}", "<cell 1>")
    assert below == _by_tree(f"\n\n{text}", "<cell 1>") and below != by_line
    assert run(by_line) == run(by_tree)


@pytest.mark.parametrize("text", BY_TREE)
def test_where_the_last_line_is_not_the_last_expression_the_tree_is_asked(text):
    assert _by_line(text, "<cell 1>") is None
    assert run(marshal.loads(compiled(text, "<cell 1>"))) == run(_by_tree(text, "<cell 1>"))


@pytest.mark.parametrize("text", ["x = (1\n5", "def f():\n5", "x = 1 \\\n\n)", "s = '''\n5", "@d\n5", "return 5"])
def test_what_is_no_code_is_an_error_at_its_line(text):
    with pytest.raises(SyntaxError) as tree:
        _by_tree(text, "<cell 1>")
    with pytest.raises(SyntaxError) as found:
        compiled(text, "<cell 1>")
    assert (found.value.lineno, found.value.msg) == (tree.value.lineno, tree.value.msg)
