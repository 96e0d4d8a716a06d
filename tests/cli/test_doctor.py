"""The doctor's page: its exit code, its words in a pipe and on a narrow terminal, and facts of this very machine."""

import io
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from lt_core.base.cluster import Wire
from lt_core.base.errors import RankError, UserError
from lt_core.cli import doctor, facts
from lt_core.cli.findings import findings
from lt_core.comm import folders
from tests.cli.machines import GB, WHOLE


def test_a_ready_machine_ends_with_0_and_what_comes_next(capsys):
    assert doctor.examine(lambda: WHOLE) == 0
    assert capsys.readouterr().out.endswith("Ready. Next: ltlab ring, then make lab.\n")


def test_a_note_does_not_stop_the_course(capsys):
    assert doctor.examine(lambda: replace(WHOLE, cores=1, rendezvous=False)) == 0
    said = capsys.readouterr().out
    assert "note" in said and "Next steps" in said and "STOP" not in said


def test_what_stops_the_course_ends_with_1_and_is_named(capsys):
    trouble = "Deadline: ranks [1] did not come up within 60 s"
    broken = replace(WHOLE, memory_bytes=GB // 4, pair=None, trouble=trouble)
    assert doctor.examine(lambda: broken) == 1
    said = capsys.readouterr().out
    assert said.endswith("Not ready: memory, two ranks.\n")
    assert trouble in said


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_page(width):
    out = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    doctor.render(out, findings(replace(WHOLE, cores=1, gpus=(), rendezvous=False, shared_bytes=0)))
    lines = out.file.getvalue().splitlines()
    assert len(lines) > 12
    assert max(map(len, lines)) <= width


def test_in_a_pipe_there_is_no_colour_and_no_frame(capsys):
    doctor.examine(lambda: replace(WHOLE, cores=1))
    assert not set(capsys.readouterr().out) & set("\x1b─│━┃")


def test_no_color_leaves_a_terminal_without_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = Console(file=io.StringIO(), width=80, force_terminal=True, highlight=False, markup=False)
    doctor.render(out, findings(replace(WHOLE, cores=1, memory_bytes=0)))
    assert "STOP" in out.file.getvalue() and "\x1b[31m" not in out.file.getvalue()


WIRE = Wire("here", 1e-5, 1e9)


def saying(*right: bool):
    """Two ranks that say so."""
    return lambda: [facts.Said(one, "gloo", WIRE) for one in right]


def raising(error: Exception):
    """A launch that ends so."""

    def launch():
        raise error

    return launch


def test_facts_of_this_machine_hold_what_two_ranks_said():
    seen = facts.gather(try_two=saying(True, True))
    assert seen.platform == sys.platform and seen.cores >= 1 and "gloo" in seen.backends
    assert seen.memory_bytes > 0 and seen.scratch_bytes > 0
    assert seen.pair and (seen.pair.backend, seen.pair.elements, seen.pair.wire) == ("gloo", facts.ELEMENTS, WIRE)


def test_a_launch_that_raises_is_a_fact():
    seen = facts.gather(try_two=raising(RankError(1, "MemoryError", "no room")))
    assert seen.pair is None
    assert seen.trouble == "RankError: rank 1 failed first: MemoryError: no room"


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_wrong_sum_on_either_rank_is_a_fact(wrong):
    seen = facts.gather(try_two=saying(wrong != 0, wrong != 1))
    assert seen.pair is None
    assert seen.trouble == f"gloo: the sum came out wrong on rank {wrong}"


def test_on_native_windows_nothing_is_asked_and_nothing_launched():
    seen = facts.gather("win32", raising(AssertionError("launched")))
    assert (seen.platform, seen.cores, seen.trouble) == ("win32", 0, "")


def test_the_proof_runs_on_real_ranks(ranks):
    for one in ranks(2).run(facts.sum_and_measure, 1000):
        assert one.right and one.backend == ranks(2).backend
        assert one.wire.latency_s > 0 and one.wire.bytes_per_s > 0


@pytest.mark.parametrize(("mounts", "found"), [({"/": "ext4"}, False), ({"/dev/shm": "tmpfs"}, True), ({}, False)])
def test_shared_memory_is_asked_where_it_is_mounted(mounts, found, monkeypatch):
    monkeypatch.setattr(facts.shutil, "disk_usage", lambda place: SimpleNamespace(free=64))
    assert facts.shared_bytes(mounts) == (64 if found else None)


def test_a_folder_of_another_user_is_a_fact(monkeypatch):
    def refuse():
        raise UserError("the folder /tmp/lt_core-7 is not ours alone")

    monkeypatch.setattr(folders, "root", refuse)
    seen = facts.gather(try_two=saying(True, True))
    assert (seen.scratch, seen.scratch_bytes) == ("no folder (the folder /tmp/lt_core-7 is not ours alone)", 0)
