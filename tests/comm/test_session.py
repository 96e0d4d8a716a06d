"""The launching process's side, with shell scripts in torchrun's place: whatever they do, it ends and says what was."""

import json
import os
import pickle
import select
import signal

import pytest

from lt_core.base.errors import Deadline, RankError
from lt_core.comm import failure, folders, host, session
from lt_core.comm.session import Session

SAYS = """say() { printf '{"rank": 0, "what": "%s", "pid": %s}\\n' $1 $2 > $0/reports; }; """


@pytest.fixture
def played():
    """`played(script)`: a session of one rank whose torchrun is that shell script; $0 is the folder."""
    with folders.make() as folder, Session(folder, 1) as under_way:

        def play(script):
            under_way.start(["sh", "-c", SAYS + script, str(folder.path)], dict(os.environ))
            return under_way

        yield play


def test_what_torchrun_says_of_itself_is_told(played):
    with pytest.raises(RuntimeError, match="torchrun ended before its ranks did; torchrun said:\nno such option: -x"):
        played("echo 'no such option: -x' >&2; exit 2").finish(30)


def test_a_rank_that_dies_before_it_speaks_is_known_from_torchruns_log(played):
    script = "echo 'failed (exitcode: -11) local_rank: 0 (pid: 3) of binary: python' >&2; exit 1"
    with pytest.raises(RankError, match=r"rank 0 failed first: died: signal 11 \(SIGSEGV\)"):
        played(script).finish(30)


def test_a_rank_that_exits_by_itself_is_told_with_its_last_line(played):
    rank = "sh -c 'sleep 0.1; echo last words > $0/stderr.0; exit 7' $0 & "
    with pytest.raises(RankError, match="rank 0 failed first: died: exit code 7; its last line: last words"):
        played(rank + "say started $!; say ready $!; exec sleep 60").finish(30)


def test_what_does_not_come_up_is_named(played):
    with pytest.raises(Deadline, match=r"ranks \[0\] were not ready after 0.05 s"):
        played("sleep 60").finish(0.05)


def test_a_failure_reported_is_raised_once_nobody_else_can_speak(played, monkeypatch):
    monkeypatch.setattr(session, "OTHERS_S", 30)
    told = failure.of_exception(0, 1.0, KeyError("x"))
    under_way = played("say started $$; sleep 60")
    (under_way.folder / "failure.0").write_bytes(pickle.dumps(told))
    with open(under_way.folder / "reports", "w") as reports:
        reports.write(json.dumps({"rank": 0, "what": "failed", "pid": os.getpid()}) + "\n")
    with pytest.raises(RankError, match="rank 0 failed first: KeyError: 'x'"):
        under_way.finish(30)


def test_ranks_that_do_not_leave_are_ended(monkeypatch):
    monkeypatch.setattr(session, "LEAVE_S", 0.05)
    with folders.make() as folder:
        with Session(folder, 1) as under_way:
            script = "say started $$; say ready $$; say done $$; trap '' TERM; sleep 60 & wait"
            under_way.start(["sh", "-c", SAYS + script, str(folder.path)], dict(os.environ))
            under_way.finish(30)
            watched = host.watch(under_way.ranks[0].pid)
        assert select.select([watched], [], [], 0)[0] == [watched]
        os.close(watched)


def test_when_the_keeper_is_killed_its_orphans_are_ended():
    with folders.make() as folder:
        with Session(folder, 1) as under_way, pytest.raises(RankError, match="signal 9"):
            script = "setsid sleep 60 > /dev/null & say started $$; say ready $$; wait"
            under_way.start(["sh", "-c", SAYS + script, str(folder.path)], dict(os.environ))
            while under_way.ranks[0].state != "ready":
                under_way._step(None)
            assert len(host.marked(folder.path)) >= 3  # keeper, script, sleep
            os.kill(under_way._keeper.pid, signal.SIGKILL)
            under_way.finish(30)
        assert host.marked(folder.path) == []
    assert not folder.path.exists()


def test_without_descriptors_of_processes_torchruns_end_tells(played, monkeypatch):
    """As on macOS: nothing wakes us when a rank ends, and torchrun says it a tenth of a second later."""
    monkeypatch.setattr(host, "watch", lambda pid: None)
    script = "say started $$; say ready $$; echo 'failed (exitcode: 7) local_rank: 0 (pid: 3)' >&2; exit 1"
    with pytest.raises(RankError, match="rank 0 failed first: died: exit code 7"):
        played(script).finish(30)
