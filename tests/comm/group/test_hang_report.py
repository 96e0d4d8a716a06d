"""Clauses 8 and 13: a wait that is too long is told rank by rank; a long cell is told while it runs, undisturbed."""

import os
import re
from types import SimpleNamespace

import pytest

from lt_core.base import torch_compat
from lt_core.comm.group import Cell, Group
from lt_core.comm.group.pages import Page, Watched, Where
from lt_core.comm.group.report import pending, report
from lt_core.comm.group.source import call_at
from lt_core.comm.group.stuck import Watch, circle
from tests.comm.group.conftest import run

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def three(own_root):
    """Three ranks: one waits, one computes, one is stopped."""
    held = Group(3, backend="gloo", owner="three.ipynb", alone=False)
    held.start()
    yield held
    held.stop()


def test_a_wait_that_is_too_long_names_who_is_missing_and_where_all_are(three):
    text = (
        "import time, os, signal\nkept = 1\nif rank == 0:\n    comm.all_reduce(torch.ones(2, 3))\n"
        "elif rank == 1:\n    time.sleep(60)\nelse:\n    while True: pass"
    )
    seen = run(three, text, timeout_s=1)
    error = seen.error
    assert (error.rank, error.kind) == (1, "Deadline") and seen.seconds < 4
    assert re.fullmatch(
        r"rank 0 waits in all_reduce of \(2, 3\) float32 \(collective 1 of this cell\), line 4 for more than 1 s: "
        r"ranks 1-2 have not come", error.message
    )  # fmt: skip
    where, first, second, third = error.details.splitlines()
    assert where == "where the ranks are:"
    assert re.match(
        r"  rank 0 waits in all_reduce of \(2, 3\) float32 \(collective 1 of this cell\), line 4 for 1\.\d s", first
    )
    assert second == "  rank 1 is in no collective: time.sleep at line 6"
    assert third == "  rank 2 is in no collective: while True: pass at line 8, running"
    assert run(three, "comm.barrier()\nkept").values == dict.fromkeys(range(3), "1")


def test_a_cell_may_last_longer_than_a_wait(three):
    seen = run(three, "import time\ntime.sleep(0.6)\ncomm.barrier()\ntime.sleep(0.6)\n'done'", timeout_s=0.5)
    assert seen.values[0] == "'done'"


def test_a_call_past_comm_is_found_in_torchs_own_record(three):
    text = (
        "import torch.distributed as d, time\nif rank == 0:\n    d.all_reduce(torch.ones(5))\nelse:\n    time.sleep(60)"
    )
    seen = run(three, text, timeout_s=0.5)
    assert seen.error.message == "rank 0 waits in torch.distributed's all_reduce of (5,) for more than 0.5 s"
    assert "  rank 0 waits in torch.distributed's own all_reduce of (5,): d.all_reduce at line 3" in str(seen.error)


def test_of_a_wait_on_a_page_torchs_own_record_is_not_asked():
    """It has the same wait, and could be over its limit first: then nobody would be said to be missing."""
    asked, here = [], Where("all", (0, 1), 1, 4, 10.0, "barrier")
    members = SimpleNamespace(size=2, ask=lambda ranks, *_: asked.append(ranks) or {})
    pages = SimpleNamespace(waits=lambda rank: [here] if rank == 0 else [], missing=lambda *_: [1])
    assert Watch(members, pages, Cell("", timeout_s=1.0), 0, (0, 1)).look((0, 1), now_s=10.9, age_s=2.0) is None
    assert asked == [[1]]


def test_a_rank_that_does_not_answer_a_signal_is_told_from_its_page(three):
    deaf = "import faulthandler, signal, time\nfaulthandler.unregister(signal.SIGUSR1)\n"
    deaf += "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\nif rank == 1: time.sleep(60)\ncomm.barrier()"
    where = run(three, deaf, timeout_s=0.5).error.details.splitlines()
    assert re.match(r"  rank 0 waits in barrier \(collective 1 of this cell\), line 5 for ", where[1])
    assert where[2] == "  rank 1 is in no collective"
    stack = f"open('{three.status().folder}/stack.' + str(rank), 'ab', 0)"
    assert run(three, f"faulthandler.register(signal.SIGUSR1, {stack}, all_threads=False)").error is None


def test_ranks_that_wait_for_each_other_are_drawn_as_a_circle(three):
    """Each sends before it receives, so nobody does."""
    text = (
        "came, right, left = torch.empty(2), (rank + 1) % 3, (rank - 1) % 3\n"
        "comm.exchange([(torch.ones(2), right)], [])\ncomm.exchange([], [(came, left)])"
    )
    error = run(three, text, timeout_s=0.7).error
    circle = "Deadline: ranks wait for each other in a circle, 0 -> 1 -> 2 -> 0, for more than 0.7 s"
    assert str(error).startswith(f"{circle}\nwhere the ranks are:\n  rank 0 waits in ")  # and none of them was first
    assert "  rank 1 waits in exchange (to 2), line 2 for " in error.details


@pytest.mark.parametrize(
    ("waits_for", "found"),
    [
        ({}, []),
        ({0: [1], 1: [2]}, []),
        ({0: [1], 1: [0]}, [0, 1]),
        ({0: [1], 1: [2], 2: [3], 3: [1]}, [1, 2, 3]),
        ({2: [0, 1], 1: [2], 0: []}, [1, 2]),
        ({0: [1, 2], 1: [], 2: [0]}, [0, 2]),
    ],
)
def test_a_circle_is_found_wherever_it_is(waits_for, found):
    assert circle(waits_for) == found


def test_a_rank_in_c_that_holds_the_interpreter_is_seen(three):
    """Its Python threads do not answer; faulthandler's signal does."""
    seen = run(three, "if rank == 1:\n    x = sum(range(2 * 10**8))\ncomm.barrier()", timeout_s=0.5)
    assert "  rank 1 is in no collective: sum at line 2; its control thread does not answer" in str(seen.error)
    again = run(three, "rank", timeout_s=50)
    assert again.values == {0: "0", 1: "1", 2: "2"} and again.lines[0].text.startswith("waiting: rank 1 is ")


def test_several_waits_of_one_rank_are_all_watched(three):
    """A rank may have several threads, as `execute` has; none of their waits is lost."""
    text = (
        "import threading\npair = comm.subset([0, 1])\nif rank == 0:\n"
        "    thread = threading.Thread(target=pair.barrier, daemon=True); thread.start()\n    comm.barrier()\n"
        "if rank == 2:\n    comm.barrier()\nif rank == 1:\n    import time; time.sleep(60)"
    )
    seen = run(three, text, timeout_s=0.7)
    assert seen.error.rank == 1 and seen.error.message.endswith("rank 1 has not come")


def test_collectives_are_counted_from_the_cells_begin(three):
    """From the ranks' own start they were number 699; in each group of ranks for itself."""
    begun = "pair, x = comm.subset([0, 1]), torch.ones(2)\nfor _ in range(3): comm.barrier()"
    assert run(three, f"{begun}\nif rank < 2: pair.barrier(), pair.start('all_reduce', x).wait()").error is None
    mine = run(three, "comm.barrier()\nif rank == 0: comm.barrier()").error
    assert mine.message.endswith("have ended the cell, but rank 0 waits in barrier (collective 2 of this cell), line 2")
    assert run(three, f"{begun}\nif rank == 0: work = pair.start('all_reduce', x)").error is None
    pairs = run(three, "if rank == 0: work.wait()").error
    assert pairs.message.endswith("rank 0 waits in all_reduce of (2,) float32 (begun by an earlier cell), line 1")


@pytest.mark.parametrize(("ranks", "read"), [(3, True), (200, True), (1000, False)])
def test_a_wait_of_many_ranks_is_read_or_passed_over(tmp_path, ranks, read):
    """Who reads it looks ten times a second at every cell, and may not stumble over one."""
    where = Where("all", tuple(range(ranks)), 11, 2, 3.5, "all_reduce of (4,) float32", before=9)
    Page(tmp_path / "page.0").write(where)
    assert Watched(tmp_path, 1).waits(0) == [where] * read


def test_a_long_cell_is_told_while_it_runs(three):
    text = "import time\nif rank == 1:\n    time.sleep(2.6)\ncomm.barrier()"
    seen = run(three, text)
    assert seen.error is None and 1 <= len(seen.progress) <= 3
    assert re.fullmatch(
        r"ranks 0, 2: in barrier \(collective 1 of this cell\), line 4; rank 1: in no collective", seen.progress[0]
    )  # fmt: skip


def test_a_short_cell_is_told_nothing(three):
    assert run(three, "comm.barrier()").progress == []


def test_a_stopped_rank_is_named(three):
    text = "import os, signal\nif rank == 2: os.kill(os.getpid(), signal.SIGSTOP)\ncomm.barrier()"
    seen = run(three, text, timeout_s=0.5)
    assert seen.error.rank == 2 and seen.error.message.endswith("rank 2 has not come")
    assert "  rank 2 is in no collective; its control thread does not answer, stopped" in str(seen.error)


class Deaf:
    """Three ranks of which nobody answers, on a clock of its own: the second has ended, the third is another's."""

    size, deaths = 3, (1,)

    def __init__(self, folder):
        self.folder, self.pids, self.now_s = folder, [os.getpid(), 0, os.getpid()], 100.0
        for rank in range(3):
            (folder / f"stack.{rank}").touch()

    def monotonic(self):
        return self.now_s

    def time_ns(self):
        return int(self.now_s * 1e9)

    def sleep(self, seconds):
        self.now_s += seconds

    def ask(self, ranks, what, within_s):
        self.now_s += within_s
        return {}

    def signal(self, ranks, sign):
        pass


def test_a_report_of_ranks_that_do_not_answer_takes_less_than_three_tenths_of_a_second(tmp_path, monkeypatch):
    """By the clock of what it waits for; what the pages say needs nothing of a rank."""
    members, pages = Deaf(tmp_path), []
    for rank in range(3):
        pages.append(Page(tmp_path / f"page.{rank}"))
    pages[0].write(Where("all", (0, 1, 2), 11, 2, 99.0, "all_reduce of (4,) float32", before=9))
    monkeypatch.setattr("lt_core.comm.group.report.time", members)
    said = report(members, Watched(tmp_path, 3), Cell("comm.all_reduce(x)"), [0, 1], [0, 1])
    assert members.now_s - 100 < 0.3
    _, first, second, third = said.splitlines()
    assert first.startswith(
        "  rank 0 waits in all_reduce of (4,) float32 (collective 2 of this cell), line 2 for 1.2 s"
    )
    assert second == "  rank 1 is in no collective; its control thread does not answer, gone"
    assert third.startswith("  rank 2 does not run this cell")


def test_torchs_record_in_words(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 10_000_000_000)
    entry = {
        "retired": False,
        "time_created_ns": 2_000_000_000,
        "profiling_name": "gloo:all_reduce",
        "input_sizes": [[2, 3]],
    }
    assert pending([entry, entry | {"retired": True}], 7.0) == ["all_reduce of (2, 3)"]
    assert pending([entry | {"profiling_name": "gloo:barrier", "input_sizes": []}], 7.0) == ["barrier"]
    assert pending([entry], 9.0) == [] and pending(None, 0.0) == [] and pending("gone", 0.0) == []


def test_without_torchs_private_name_there_is_no_record(monkeypatch):
    monkeypatch.delattr("torch._C._distributed_c10d._dump_fr_trace_json")
    assert torch_compat.flight() == []


@pytest.mark.parametrize(
    ("line", "call"), [(1, "torch.linalg.svd"), (2, "y = 3"), (4, "f"), (5, "f"), (6, "while True: pass"), (9, "")]
)
def test_what_a_line_calls(line, call):
    assert call_at("u = torch.linalg.svd(g(x))\ny = 3\n\nf(1,\n  2)\nwhile True: pass", line) == call
