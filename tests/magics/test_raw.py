"""The body reaches the ranks byte for byte: IPython's own expansions, magics and prompts stay out of it."""

import pytest

BODIES = {
    "f-strings": 'x = 3\nprint(f"{x} {{x}} {x!r:>5}")\n',
    "dollar": "print('$HOME $x ${x} {x}')\n",
    "percent": "a = 7 %3\n'%d' % a\n",
    "magic": "%time x\n%%timeit\n",
    "shell": "!ls\nfiles = !ls\n",
    "tabs": "if True:\n\tprint('\t')\n",
    "triple quotes": "x = '''\n  a\n\n'''\ny = \"\"\"'''\"\"\"\n",
    "non-ASCII": "größe = 'Ω 環 🙂'\n",
    "separators": "x = 'a\x0cb\u2028c\x85d'\n",
    "carriage returns": "x = 1\r\ny = 2\r\n",
    "backslash": "x = 1 + \\\n  2\nr'\\n'\n",
    "future": "from __future__ import annotations\ndef f(x: no_such): ...\n",
    "await": "await f()\n",
    "empty lines": "\n\n\n",
    "spaces": "   \n  # x\n   \n",
    "no newline at the end": "x = 1\nx",
    "prompts in a string": "a = \"'''\"\nb = '''\n>>> c\n... d\n'''\n",
    "ellipsis": "...\n",
    "a prompt first": "...: x\nIn [1]: y\n",
    "question": "x?\n?x\nx??\n",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_body_arrives_byte_for_byte(notebook, groups, body):
    """Users met braces and dollars that were expanded where they did not ask for it."""
    notebook.names.update(x=1)
    notebook.run(f"%%torchrun -n 2\n{body}")
    assert groups.made[0].cells[0].text.encode() == body.encode()


def test_lines_above_the_magic_are_no_part_of_it(notebook, groups):
    notebook.run("\n \n%%torchrun -n 2\nx = 1")
    assert groups.made[0].cells[0].text == "x = 1"


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%%torchrun -n 2\nx\n", 2),
        ("%%torchrun -n 2\n\n\nx\ny\n\n\n", 2),
        ("\n \n%%torchrun -n 2\nx", 4),
        ("  %%torchrun -n 2\n  x = 1\n  x", 2),
        (">>> %%torchrun -n 2\n>>> x = 1\n>>> x", 2),
        ("%%time\n%%torchrun -n 2\nx", 3),
        ("get_ipython().run_cell_magic('torchrun', '-n 2', 'x')", 1),
        ("# %%torchrun\nget_ipython().run_cell_magic('torchrun', '-n 2', 'x\\ny\\nx')", 1),
    ],
)
def test_a_body_begins_at_the_line_that_the_notebook_shows(notebook, groups, cell, line):
    """The magic's line stands above it and is counted by whoever looks at the notebook."""
    notebook.run(cell)
    assert groups.made[0].cells[0].first_line == line


def test_a_body_from_elsewhere_is_not_mistaken_for_the_cell(notebook, groups):
    notebook.run("%%torchrun -n 2\nthe = 'cell'")
    notebook.shell.run_cell_magic("torchrun", "", "the = 'call'")
    notebook.run("get_ipython().run_cell_magic('torchrun', '', 'a = 1\\n')")
    assert [cell.text for cell in groups.made[0].cells] == ["the = 'cell'", "the = 'call'", "a = 1\n"]


def test_an_empty_body_is_told_by_ipython_itself(notebook, groups, capsys):
    notebook.shell.run_cell("%%torchrun -n 2")
    assert "UsageError: %%torchrun is a cell magic, but the cell body is empty" in capsys.readouterr().err
    assert groups.made == []
