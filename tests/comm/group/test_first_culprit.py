"""Clause 3: a cell that fails raises one exception, beginning with the rank that failed first, and the group lives."""

import pytest

from lt_core.base.errors import RankError
from lt_core.comm.group import Group
from tests.comm.group.conftest import run

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def four(own_root):
    """Four ranks: enough for several to fail and several to wait."""
    held = Group(4, backend="gloo", owner="four.ipynb", alone=False)
    yield held
    held.stop()


def followed(error: RankError) -> dict[int, str]:
    lines = error.details.partition("what followed:\n")[2].splitlines()
    return {int(line.split()[1].rstrip(":")): line.partition(": ")[2] for line in lines if line.startswith("  rank")}


def test_one_rank_raises_while_the_others_wait_for_it(four):
    """pytorch#113546: the others waited 30 minutes, and a healthy rank's connection error was shown."""
    run(four, "kept = 'kept'")
    text = "if rank == 2:\n    raise ValueError('boom-ü')\ncomm.all_reduce(torch.ones(3))"
    seen = run(four, text, name="<cell 5>")
    error = seen.error
    assert isinstance(error, RankError) and isinstance(error.__cause__, ValueError)
    assert (error.rank, error.kind, error.message) == (2, "ValueError", "boom-ü")
    first, second, *_ = str(error).splitlines()
    assert first == "rank 2 failed first: ValueError: boom-ü"
    assert second == "line 2 of the cell: raise ValueError('boom-ü')"
    assert followed(error) == dict.fromkeys((0, 1, 3), "Aborted: rank 2 raised ValueError: boom-ü")
    assert seen.seconds < 2
    assert run(four, "kept, comm.rank").values == {r: f"('kept', {r})" for r in range(4)}


def test_the_cells_own_line_is_named_where_the_error_is_deeper(four):
    run(four, "def divide(a, b):\n    return a / b", name="<cell 1>")
    error = run(four, "x = 1\n\ny = divide(x, rank)", name="<cell 2>").error
    assert str(error).splitlines()[:2] == [
        "rank 0 failed first: ZeroDivisionError: division by zero",
        "line 3 of the cell: y = divide(x, rank)",
    ]
    assert 'File "<cell 1>", line 2, in divide\n    return a / b' in str(error)
    assert "comm/group" not in str(error)


def test_lines_are_counted_from_the_cells_first(four):
    """Where its text begins in the notebook; tracebacks, the line in front and what is waited in all say the same."""
    run(four, "def divide(a, b):\n    return a / b", name="<cell 1>", first_line=5)
    error = run(four, "\n# empty above\ndivide(1,\n  rank)", name="<cell 2>", first_line=3).error
    assert str(error).splitlines()[1] == "line 5 of the cell: divide(1,"
    assert 'File "<cell 2>", line 5, in <module>\n    divide(1,' in str(error)
    assert 'File "<cell 1>", line 6, in divide\n    return a / b' in str(error)
    waits = run(four, "if rank:\n    comm.barrier()", ranks=(0, 1), first_line=3, timeout_s=50).error
    assert waits.message.endswith(", line 4")


FREED = "try: comm.barrier()\n    except BaseException: pass\n"  # when the first culprit has failed


def test_two_ranks_raise_different_errors(four):
    text = f"if rank == 3: raise KeyError(3)\nif rank == 1:\n    {FREED}    raise OSError(1)"
    error = run(four, text).error
    assert (error.rank, error.kind) == (3, "KeyError")
    assert followed(error) == {1: "OSError: 1"}


def test_a_peer_that_computes_is_told_to_stop(four):
    seen = run(four, "import time\nif rank == 0:\n    1 / 0\ntime.sleep(60)")
    assert (seen.error.rank, seen.error.kind) == (0, "ZeroDivisionError")
    assert followed(seen.error) == dict.fromkeys((1, 2, 3), "KeyboardInterrupt: ")
    assert seen.seconds < 3


def test_a_peer_that_waits_in_a_group_of_its_own_is_freed(four):
    """By its socket: a subset, and a group that the user made of torch.distributed itself."""
    text = (
        "import torch.distributed as dist\nown = dist.new_group([1, 2])\npair = comm.subset([2, 3])\n"
        "x = torch.ones(1)\n"
        "if rank == 0:\n    raise RuntimeError('gone')\n"
        "if rank == 1:\n    dist.all_reduce(x, group=own)\nelse:\n    pair.barrier() if rank == 3 else dist.barrier()"
    )
    seen = run(four, text)
    assert (seen.error.rank, seen.error.kind, seen.error.message) == (0, "RuntimeError", "gone")
    assert set(followed(seen.error)) == {1, 2, 3} and seen.seconds < 3
    assert run(four, "comm.barrier()\nrank").values == {r: str(r) for r in range(4)}


def test_printed_lines_come_before_the_error_each_once(four):
    """ipyparallel#661: what was printed before an error was lost, and of many errors only their number was shown."""
    text = (
        "import sys\nprint('out', rank)\nprint('err', rank, file=sys.stderr)\nprint('end', rank, end='')\n"
        "print('last', rank, file=sys.stderr)\ncomm.barrier()\n"
        f"if rank > {{0}}:\n    {FREED}if rank >= {{0}}: raise ValueError(rank)"
    )
    for first in (0, 3):  # all of them, and the last alone
        seen = run(four, text.format(first))
        for stream, words in {"out": ("out", "end"), "err": ("err", "last")}.items():
            said = seen.texts(stream)
            assert [[text for ranks, text in said if ranks == (r,)] for r in range(4)] == [
                [f"{word} {r}" for word in words] for r in range(4)
            ]
            assert len(said) == 8
        assert seen.error.rank == first
        assert followed(seen.error) == {r: f"ValueError: {r}" for r in range(first + 1, 4)}


def test_a_callback_that_fails_when_the_others_have_ended_their_cell(four):
    text = (
        "for _ in range(3): comm.all_reduce(torch.ones(3))\n"
        "def callback(): raise OSError('disk full')\nif rank == 0:\n    import time; time.sleep(0.2); callback()"
    )
    error = run(four, text).error
    assert str(error).splitlines()[:2] == [
        "rank 0 failed first: OSError: disk full",
        "line 2 of the cell: def callback(): raise OSError('disk full')",
    ]
    assert followed(error) == {} and run(four, "comm.barrier()\nrank").values == {r: str(r) for r in range(4)}


def test_exit_codes_are_errors(four):
    error = run(four, "import sys\nsys.exit(3 if rank == 1 else 0)").error
    assert (error.rank, error.kind, error.message) == (1, "SystemExit", "3")


def test_an_error_that_cannot_be_pickled_still_says_what_it_is(four):
    text = "import threading\nclass Odd(Exception): pass\nif rank == 0: raise Odd(threading.Lock())"
    error = run(four, text).error
    assert (error.rank, error.kind) == (0, "Odd") and error.message.startswith("<unlocked _thread.lock")
    assert error.__cause__ is None


def test_an_error_that_fails_at_its_own_words_is_still_an_error(four):
    text = "class Odd(BaseException):\n    def __str__(self): raise RuntimeError\nif rank == 1: raise Odd"
    error = run(four, text).error
    assert (error.rank, error.kind, error.message) == (1, "Odd", "<exception str() failed>") and four.alive


def test_what_is_in_a_group_of_errors_is_told(four):
    details = run(four, "if rank == 3: raise ExceptionGroup('two', [ValueError(1), KeyError('x')])").error.details
    assert "ExceptionGroup: two (2 sub-exceptions)\n  ValueError: 1\n  KeyError: 'x'" in details


def test_a_fork_that_comes_out_of_its_cell_ends_and_only_the_rank_answers(four):
    """As in a script, where it would come out of the file."""
    text = "import os\npid = os.fork()\nif pid == 0 and rank == 2: {}\nos.waitpid(pid, 0)[1] if pid else 'never'"
    assert set(run(four, text.format("pass")).values.values()) == {"0"}
    seen = run(four, text.format("1 / 0"))
    assert seen.values == {0: "0", 1: "0", 2: "256", 3: "0"}
    said = [line for ranks, line in seen.texts("err") if ranks == (2,)]
    assert said[0].startswith("Traceback") and said[-1] == "ZeroDivisionError: division by zero"
    assert not [line for line in said if "comm/group" in line]
    assert run(four, "comm.barrier()\nrank").values == {r: str(r) for r in range(4)}


def test_a_rank_that_has_ended_its_cell_can_never_be_met(four):
    seen = run(four, "if rank == 1:\n    'done'\nelse:\n    comm.all_reduce(torch.ones(2, 3))", timeout_s=50)
    assert seen.error.rank == 1
    said = "rank 1 has ended the cell, but rank 0 waits in all_reduce of (2, 3) float32 (collective "
    assert seen.error.message == f"{said}1 of this cell), line 4"
    assert 0.5 < seen.seconds < 3
    assert run(four, "comm.barrier()").error is None


def test_nor_can_one_that_does_not_run_the_cell(four):
    seen = run(four, "comm.barrier()", ranks=(0, 2), timeout_s=50)
    assert seen.error.message.startswith("ranks 1, 3 do not run this cell, but rank 0 waits in barrier (collective ")


def test_a_message_that_nobody_sends_can_never_come(four):
    text = (
        "if rank == 3: comm.exchange([], [(torch.ones(1), 2)])\nif rank == 0: comm.exchange([(torch.ones(1), 1)], [])\n"
    )
    seen = run(four, text + "if rank == 1: comm.exchange([], [(torch.ones(1), 0)])", timeout_s=50)
    assert seen.error.rank == 2
    assert seen.error.message == "rank 2 has ended the cell, but rank 3 waits in exchange (from 2), line 1"


def test_a_rank_that_has_begun_its_part_and_left_is_no_reason(four):
    """It ended its cell; its message is on its way, and its all-reduce has been begun."""
    text = (
        "x = torch.ones(4)\n"
        "if rank == 0:\n    work = comm.start('all_reduce', x)\n"
        "else:\n    import time; time.sleep(1.2)\n    comm.all_reduce(x)\nx[0].item()"
    )
    seen = run(four, text)
    assert seen.error is None and seen.values[3] == "4.0"


def test_an_error_that_the_cell_catches_does_not_end_it(four):
    text = "try:\n    comm.all_reduce('x')\nexcept ValueError as error:\n    said = str(error)\ncomm.barrier()\nsaid"
    assert run(four, text).values[2] == "'all_reduce takes tensors; got str; expected a torch.Tensor'"
