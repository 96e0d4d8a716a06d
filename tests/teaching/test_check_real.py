"""Real processes come last, where all else holds; what goes wrong with them is a line as well."""

import pytest

from lt_core.base import RankError, UserError
from lt_core.teaching import check
from lt_core.teaching.checks.ring_answers import all_gather, reduce_scatter


def test_real_processes_come_last_and_only_if_the_rest_holds(ranks, capsys):
    launches = []

    def launch(fn, size, *args):
        launches.append(size)
        return ranks(size).run(fn, *args)

    assert not check("20.reduce_scatter", lambda comm, x: None, launch=launch).passed and launches == []
    found = check("20.reduce_scatter", reduce_scatter, launch=launch)
    assert found.passed and launches == [4]
    assert str(found.lines[-1]) == f"✔ real processes ({ranks(4).backend}, 4 ranks)"
    assert "20.reduce_scatter: 10 properties hold on threads, now real processes." in capsys.readouterr().out


def test_an_error_on_real_processes_has_its_line_too(ranks):
    def answer(comm, x):
        if comm.timeout_s > 10 and comm.rank == 1:
            raise ValueError("only there")  # <- here
        return reduce_scatter(comm, x)

    last = check("20.reduce_scatter", answer, launch=lambda fn, size, *a: ranks(size).run(fn, *a)).lines[-1]
    assert last.holds is False and "rank 1: ValueError: only there (your line " in last.why and "# <- here" in last.why


@pytest.mark.parametrize(
    ("error", "holds", "says"),
    [
        (RankError(2, "died", "signal 9 (SIGKILL)"), False, "24 elements on 4 ranks: rank 2: died: signal 9 (SIGKILL)"),
        (UserError("the function cannot be sent"), False, "the function cannot be sent"),
        (OSError("no space left"), None, "could not be started: OSError: no space left"),
    ],
)
def test_a_launch_that_fails_is_a_line(error, holds, says):
    def launch(fn, size, *args):
        raise error

    found = check("20.reduce_scatter", reduce_scatter, launch=launch)
    assert (found.lines[-1].holds, found.lines[-1].why) == (holds, says) and not found.passed


@pytest.mark.processes
@pytest.mark.timeout(180)
def test_a_real_launch():
    found = check("20.all_gather", all_gather)
    assert found.passed and "real processes (" in found.lines[-1].name, str(found)
