"""What a cell asks for reaches the group, what the group gives reaches the notebook; the ranks here are not real."""

import pytest
import torch

from lt_core.base.errors import RankError, UserError
from lt_core.comm import cuda
from lt_core.comm.group import Interrupted, Line, Outcome


def test_a_cell_is_asked_for_as_its_line_says(notebook, groups):
    notebook.names.update(x=[1], f=sum, k=3)
    notebook.run("%%torchrun -n {k} --ranks 0,2 --timeout 5 --in x,f --out y\ny = f(x)\n")
    (group,) = groups.made
    (cell,) = group.cells
    assert (group.size, cell.text, cell.ranks, cell.timeout_s) == (3, "y = f(x)\n", (0, 2), 5.0)
    assert cell.given == {"x": [1], "f": sum} and cell.wanted == ("y",)


@pytest.mark.parametrize("counted", [True, False])
def test_a_cell_has_the_number_of_its_prompt(notebook, groups, counted):
    notebook.shell.execution_count = 7
    result = notebook.shell.run_cell("%%torchrun -n 2\npass", store_history=counted)
    assert result.success and result.execution_count == 7
    assert groups.made[0].cells[0].name == "<cell 7>"


def test_out_is_a_list_by_rank_in_the_kernel(notebook, groups):
    groups.outcome = Outcome({}, {"y": [1, 2], "z": ["a", "b"]}, 0.0)
    notebook.run("%%torchrun -n 2 --out y,z\npass")
    assert (notebook.names["y"], notebook.names["z"]) == ([1, 2], ["a", "b"])


def test_in_names_what_the_kernel_lacks_before_anything_starts(notebook, groups):
    with pytest.raises(UserError, match="--in nothing: the kernel has no variable 'nothing'; try: run the cell"):
        notebook.run("%%torchrun -n 2 --in nothing\npass")
    assert groups.made == []


def test_nothing_of_the_kernel_gets_into_a_cell_unasked(notebook, groups):
    notebook.names.update(x=[1])
    notebook.run("%%torchrun -n 2\nx")
    assert groups.made[0].cells[0].given == {}


def test_lines_and_values_are_shown(notebook, groups, capsys):
    groups.shown = (Line((0, 1), "out", "hello"), Line((1,), "err", "careful"))
    groups.outcome = Outcome({0: "1", 1: "2"}, {}, 0.0)
    notebook.run("%%torchrun -n 2\npass")
    assert capsys.readouterr().out == "ranks 0-1: hello\nrank 1 stderr: careful\nrank 0 -> 1\nrank 1 -> 2\n"


def test_a_notebook_keeps_one_text(notebook, groups, kernel):
    groups.shown = (Line((1,), "out", "b"), Line((0,), "out", "a"))
    groups.outcome = Outcome({0: "1", 1: "1"}, {}, 0.0)
    notebook.run("%%torchrun -n 2\npass")
    assert [output["data"] for output in kernel] == [{"text/plain": "rank 0: a\nrank 1: b\nranks 0-1 -> 1"}]


def test_lines_before_an_error_are_shown_and_the_error_is_our_own_lines(notebook, groups, kernel, capsys):
    groups.shown = (Line((0,), "out", "before"),)
    groups.outcome = RankError(1, "ValueError", "boom", "line 2 of the cell: raise ValueError('boom')")
    with pytest.raises(RankError):
        notebook.run("%%torchrun -n 2\npass")
    assert [output["data"] for output in kernel] == [{"text/plain": "rank 0: before"}]
    assert capsys.readouterr().out == (
        "RankError: rank 1 failed first: ValueError: boom\nline 2 of the cell: raise ValueError('boom')\n"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("eight_sent", "; the notebook has it; try: --in eight_sent"),
        ("Out", "; the notebook has it; try: --in Out"),
        ("get_ipython", ""),
        ("In", ""),
        ("_", ""),
        ("torch", ""),
        ("nobodys", ""),
    ],
)
def test_a_name_that_only_the_notebook_has_is_offered_to_the_ranks(notebook, groups, name, hint):
    notebook.names.update(eight_sent=[8], torch=sum, Out="the user's", _=3)
    groups.outcome = RankError(1, "NameError", f"name '{name}' is not defined", "Traceback ...")
    groups.outcome.__cause__ = NameError(name)
    with pytest.raises(RankError) as caught:
        notebook.run(f"%%torchrun -n 2\n{name}")
    assert str(caught.value) == f"rank 1 failed first: NameError: name '{name}' is not defined{hint}\nTraceback ..."
    assert caught.value.__cause__ is groups.outcome.__cause__


@pytest.mark.parametrize(("kind", "text"), [("ValueError", "name 'x' is not defined"), ("NameError", "x is not there")])
def test_another_error_offers_no_name(notebook, groups, kind, text):
    notebook.names.update(x=1)
    groups.outcome = RankError(0, kind, text)
    with pytest.raises(RankError) as caught:
        notebook.run("%%torchrun -n 2\nx")
    assert caught.value is groups.outcome and caught.value.message == text


def test_an_interrupt_is_told_in_a_line(notebook, groups, capsys):
    groups.outcome = Interrupted("the cell was interrupted")
    with pytest.raises(KeyboardInterrupt):
        notebook.run("%%torchrun -n 2\npass")
    assert capsys.readouterr().out == "Interrupted: the cell was interrupted\n"


def test_a_wrong_line_fails_the_cell_which_a_usage_error_would_not(notebook, groups, capsys):
    with pytest.raises(UserError, match="unrecognized arguments: --no"):
        notebook.run("%%torchrun -n 2 --no\npass")
    assert groups.made == [] and "UsageError" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--backend nope", "--timeout 1e29"])
def test_what_no_rank_can_do_is_refused_before_anything_is_written_or_made(notebook, groups, tmp_path, option):
    notebook.names.update(path=tmp_path / "cell.py")
    with pytest.raises(UserError, match=option.split()[0]):
        notebook.run(f"%%torchrun -n 2 --save {{path}} {option}\npass")
    assert groups.made == [] and list(tmp_path.iterdir()) == []


def test_fresh_ranks_end_with_their_cell(notebook, groups):
    notebook.run("%%torchrun -n 2\nx = 1")
    notebook.run("%%torchrun --fresh\nx")
    warm, fresh = groups.made
    assert (fresh.size, fresh.log, [cell.text for cell in fresh.cells]) == (2, ["stop"], ["x"])
    assert warm.log == [] and len(warm.cells) == 1


def test_fresh_ranks_end_with_a_cell_that_fails(notebook, groups):
    groups.outcome = RankError(1, "ValueError", "boom")
    with pytest.raises(RankError):
        notebook.run("%%torchrun -n 2 --fresh\npass")
    assert groups.made[0].log == ["stop"] and notebook.magic.held.group is None


def test_save_writes_the_cell_and_runs_it(notebook, groups, tmp_path, capsys):
    notebook.names.update(path=tmp_path / "ring.py", k=3)
    notebook.run("%%torchrun -n 2 --in k --save {path}\nprint(k)")
    assert groups.made[0].cells[0].text == "print(k)"
    assert (tmp_path / "ring.py").read_text().endswith("k = 3\nprint(k)")
    assert capsys.readouterr().out == (
        f"saved {tmp_path}/ring.py; it runs with:\n  torchrun --standalone --nproc-per-node 2 {tmp_path}/ring.py\n"
    )


def test_who_has_initialised_cuda_in_the_kernel_is_named_in_the_next_cell_once(notebook, monkeypatch, capsys):
    """A launcher failed deep inside its processes, and nobody could find which import had done it."""
    begun = []
    monkeypatch.setattr(torch.cuda, "_lazy_call", begun.append)
    watch = cuda.Watch("before all this")
    monkeypatch.setattr(cuda, "watched", lambda: watch)
    notebook.run("%%torchrun -n 2\npass")
    assert capsys.readouterr().out == ""
    notebook.names["begun"] = begun
    notebook.run("for tell in begun: tell()")
    place = "by line 1 of a cell, `for tell in begun: tell()`"
    told = f"group: CUDA was initialised in this process {place}; {cuda.ADVICE}\n"
    for said in (told, ""):
        notebook.run("%%torchrun\npass")
        assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("session", "editor", "owner"),
    [
        ("/home/me/my_labs/20_all_reduce.ipynb", "", "20_all_reduce.ipynb"),
        ("", "/home/me/ring.ipynb", "ring.ipynb"),
        ("", "", "the kernel of process "),
    ],
)
def test_another_notebook_is_told_which_one_holds_ranks(notebook, groups, monkeypatch, session, editor, owner):
    monkeypatch.setenv("JPY_SESSION_NAME", session)
    notebook.names["__vsc_ipynb_file__"] = editor
    notebook.run("%%torchrun -n 2\npass")
    assert groups.made[0].owner.startswith(owner)
