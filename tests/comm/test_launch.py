"""A launch gives results by rank, names the first culprit at once, and leaves nothing behind, however it ends."""

import io
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import psutil
import pytest
import torch

from lt_core.base.errors import Deadline, RankError, UserError
from lt_core.comm import folders, host, launch, limits, rank_main, rendezvous, world
from lt_core.comm.control import served

ROOT = Path(__file__).parents[2]
processes = pytest.mark.processes


def refused(act):
    """The text with which `act` is refused."""
    with pytest.raises(UserError) as caught:
        act()
    return str(caught.value)


def listening():
    """The addresses at which this process, torchrun above it and the keeper above that listen."""
    family = [psutil.Process(), *psutil.Process().parents()[:2]]
    assert [p.environ().get(host.MARK) for p in family] == [host.environment(host.MARK)] * 3
    return [c.laddr.ip for p in family for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]


def gone(pid, within_s=10.0):
    """Whether the process has ended by then."""
    watched = host.watch(pid)
    if watched is None:
        return True
    ended = select.select([watched], [], [], within_s)[0]
    os.close(watched)
    return bool(ended)


# One launch that works

CELL = """
import os, sys

class Scaled:
    def __init__(self, by):
        self.by = by

def twice(x):
    return 2 * x

def closure(by):
    def inner(x):
        return by * twice(x)
    return inner

def cell(comm, add, closed, scaled, x, look):
    print("out of", comm.rank)
    print("err of", comm.rank, file=sys.stderr)
    os.write(1, b"bytes \\xff, no end")
    total = closed(add(x, comm.rank))
    comm.all_reduce(total)
    return {"total": total, "scaled": Scaled(scaled.by + comm.rank), **look(comm)}
"""


def look_around(comm):
    """What only a rank can see."""
    return {
        "pid": os.getpid(),
        "folder": host.environment(host.MARK),
        "threads": os.environ["OMP_NUM_THREADS"],
        "torch": (torch.distributed.get_rank(), torch.distributed.get_world_size()),
        "listening": listening(),
        "input": sys.stdin.read(),
        "nested": refused(lambda: launch(print, 2, backend="gloo")),
        "world": refused(world),
    }


@pytest.fixture(scope="module")
def cell():
    """What a notebook's cell defines: functions and classes of __main__, which no rank can import."""
    names = {"__name__": "__main__"}
    exec(CELL, names)
    return names


@pytest.fixture(scope="module")
def seen(cell):
    """The results of one launch of 2 ranks, the streams it wrote to, and how the machine was before."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, ExitStack() as held:
        patch.setattr(torch.cuda, "is_initialized", lambda: True)
        patch.setenv("MASTER_PORT", "29500")
        patch.setenv("OMP_NUM_THREADS", "77")
        with suppress(OSError):  # somebody else holds it: as good
            held.enter_context(socket.create_server(("127.0.0.1", 29500)))
        held.enter_context(redirect_stdout(out))
        held.enter_context(redirect_stderr(err))
        args = (lambda x, rank: x + rank, cell["closure"](3), cell["Scaled"](5), torch.arange(3.0), look_around)
        results = launch(cell["cell"], 2, *args, backend="gloo")
    return results, out.getvalue(), err.getvalue()


@processes
def test_what_a_cell_defines_reaches_the_ranks(seen, cell):
    """accelerate#3925, pytorch#20375: spawn did not find a cell's functions; CUDA was initialised in the kernel."""
    results, *_ = seen
    for rank, result in enumerate(results):
        assert torch.equal(result["total"], 6 * (2 * torch.arange(3.0) + 1))
        assert isinstance(result["scaled"], cell["Scaled"]) and result["scaled"].by == 5 + rank


@processes
def test_no_port_is_used(seen):
    """pytorch#73320: a fixed port was taken by another run. Here 29500 is held, and MASTER_PORT names it."""
    for result in seen[0]:
        assert result["listening"] == ["127.0.0.1"]  # gloo's own, one for its group


@processes
def test_what_ranks_print_is_passed_on_line_by_line(seen):
    _, out, err = seen
    assert sorted(out.splitlines()) == ["bytes \ufffd, no end"] * 2 + ["out of 0", "out of 1"]
    assert sorted(line for line in err.splitlines() if line.startswith("err of")) == ["err of 0", "err of 1"]


@processes
def test_a_rank_finds_its_place(seen):
    for rank, result in enumerate(seen[0]):
        assert result["torch"] == (rank, 2)
        assert result["threads"] == str(max(1, limits.cores() // 2))
        assert result["input"] == ""
        assert result["nested"].startswith("a rank cannot launch ranks; try: comm.subset(ranks)")
        assert result["world"].startswith("world() stands inside a launch")


@processes
def test_nothing_is_left_of_it(seen):
    for result in seen[0]:
        assert gone(result["pid"]) and not os.path.exists(result["folder"])
        assert host.marked(Path(result["folder"])) == []


@processes
def test_two_at_once_and_one_without_the_plug_in(monkeypatch):
    """pytorch#126510: two launches at the same time met each other. One of these uses torchrun's own meeting."""
    found = iter([True, False])
    monkeypatch.setattr(rendezvous, "installed", lambda: next(found))
    results = {}

    def run(name):
        results[name] = launch(lambda comm, x: (comm.rank, x), 2, name, backend="gloo")

    both = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    with pytest.warns(UserWarning, match=r"lt_core is not installed, so torchrun meets on port \d+"):
        for one in both:
            one.start()
        for one in both:
            one.join()
    assert results == {name: [(0, name), (1, name)] for name in "ab"}


def summed(comm, number):
    total = torch.tensor([float(number + comm.rank)])
    comm.all_reduce(total)
    return total.item()


def test_twenty_in_a_row_meet_nothing_of_the_one_before():
    """On threads, where they cost little: of processes every test here launches some more, from this very process."""
    before = {thread.ident for thread in threading.enumerate()}, os.listdir("/proc/self/fd")
    for number in range(20):
        assert launch(summed, 2, number, backend="threads") == [2 * number + 1.0] * 2
    assert ({thread.ident for thread in threading.enumerate()}, os.listdir("/proc/self/fd")) == before


# Failures


def two_raise(comm, desk):
    if comm.rank == 2:
        raise ValueError("boom-ü")
    if comm.rank == 0:
        desk.get()  # nobody ever puts anything
    comm.all_reduce(torch.ones(3))


@processes
def test_the_first_culprit_is_named_and_frees_the_others():
    """pytorch#113546: the others waited 30 minutes, and a healthy rank's connection error was shown."""
    with pytest.raises(RankError) as caught:
        launch(two_raise, 4, served(queue.Queue()), backend="gloo")
    error = caught.value
    assert (error.rank, error.kind, error.message) == (2, "ValueError", "boom-ü")
    assert isinstance(error.__cause__, ValueError) and str(error.__cause__) == "boom-ü"
    assert 'test_launch.py", line' in error.details and 'raise ValueError("boom-ü")' in error.details
    assert "rank_main.py" not in error.details
    followed = error.details.partition("what followed:\n")[2].splitlines()
    assert all("Aborted: rank 2 raised ValueError: boom-ü" in line for line in followed)
    assert {line.split(":")[0].strip() for line in followed} <= {"rank 1", "rank 3"}  # rank 0 waits on us


def dies(comm, how, when):
    if comm.rank == 1:
        print("last words", file=sys.stderr)
        when.put(time.monotonic())
        how()
    comm.barrier()


def fall_silent():
    os.kill(os.getpid(), signal.SIGKILL)


@processes
def test_a_rank_that_is_killed_is_the_culprit():
    when = queue.Queue()
    with pytest.raises(RankError) as caught:
        launch(dies, 2, fall_silent, served(when), backend="gloo", timeout_s=55)
    assert time.monotonic() - when.get(timeout=1) < 20  # under a second where nothing else runs, and no deadline's 55
    told = caught.value
    assert (told.rank, told.kind, told.message) == (1, "died", "signal 9 (SIGKILL); its last line: last words")


def test_a_script_that_exits_well_ended_well():
    assert rank_main._result(lambda comm: sys.exit(), None, ()) is None
    assert rank_main._result(lambda comm: sys.exit(0), None, ()) is None
    with pytest.raises(SystemExit):
        rank_main._result(lambda comm: sys.exit("no"), None, ())


def forks(comm, fails):
    pid = os.fork()
    if pid == 0 and fails:
        raise ValueError("the fork's own")
    return pid


@pytest.mark.parametrize("fails", [False, True])
def test_a_fork_of_a_rank_is_no_rank(fails):
    """It answered in the rank's place, took its leave, and its error ended the launch."""
    pid = rank_main._result(forks, None, (fails,))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == fails


ENDS = """
import atexit, threading, time
from concurrent.futures import ThreadPoolExecutor
from lt_core.comm import rank_main

def late(what, *then):
    time.sleep(0.1)
    print(what)
    if then:
        threading.Thread(target=late, args=then).start()

pool = ThreadPoolExecutor(1)  # nobody shuts it down
atexit.register(print, "at exit")
threading.Thread(target=late, args=("the thread", "the thread's thread")).start()
print(pool.submit(str, "the function").result(), end=", ")
rank_main._end()
print("never")
"""


def test_a_rank_ends_as_a_script_does():
    """Threads first, then what was to be done at exit; all of it is printed. An executor left open held it for good."""
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=30, check=False)
    said = "the function, the thread\nthe thread's thread\nat exit\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_a_rank_whose_parent_died_before_it_was_bound_to_it_ends(tmp_path, monkeypatch):
    """The kernel ends a process with the parent that it has when it asks; one that is gone by then ends nobody."""
    (tmp_path / "job.json").write_text(json.dumps({"path": sys.path}))
    parents = iter([4711, 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(host, "die_with_parent", lambda: None)
    with pytest.raises(SystemExit, match="1"):
        rank_main.main(tmp_path)


def wordless(comm):
    class Wordless(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    raise Wordless


def test_an_error_that_fails_at_its_own_words_is_one_on_threads_too():
    with pytest.raises(RankError) as caught:
        launch(wordless, 2, backend="threads")
    assert (caught.value.kind, caught.value.message) == ("Wordless", "<exception str() failed>")


@pytest.mark.parametrize("stream", [None, io.StringIO()], ids=["none", "closed"])
def test_a_rank_may_close_its_stdout(monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stdout", stream)
    rank_main._flush()  # it raised, and the rank died with its result at hand
    assert sys.stdout is stream


def test_what_does_not_fit_leaves_room_for_what_is_said_of_it(tmp_path, monkeypatch):
    def fills_up(path, data):
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fills_up)
    with pytest.raises(OSError, match="No space left"):
        rank_main._write(tmp_path / "result.0", b"12")
    assert list(tmp_path.iterdir()) == []


@processes
def test_ranks_that_do_not_come_up_are_named():
    with pytest.raises(Deadline, match=r"ranks \[0, 1\] were not ready after 0.1 s"):
        launch(print, 2, backend="gloo", timeout_s=0.1)


# Ends from outside

HOLD = """
import subprocess, sys, time
from lt_core.comm import launch

def hold(comm):
    deep = subprocess.run(["sh", "-c", "setsid sleep 300 > /dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE)
    print("holds", comm.rank, int(deep.stdout), flush=True)
    time.sleep(300)

launch(hold, 2, backend="gloo")
"""


@pytest.fixture
def holding():
    """A script whose launch is under way: its process, its keeper's id, and the ids of all below."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = subprocess.Popen(
        [sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    started = [script.stdout.readline().split() for _ in range(2)]
    assert sorted(line[:2] for line in started) == [["holds", "0"], ["holds", "1"]]
    (keeper,) = psutil.Process(script.pid).children()
    below = host.descendants(keeper.pid)
    assert {int(line[2]) for line in started} <= set(below)  # also what had set itself apart
    yield script, keeper.pid, below
    host.end(lambda: [script.pid, keeper.pid, *below])
    script.communicate()


@processes
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_all_end_with_the_launching_process(holding, sign):
    script, keeper, below = holding
    folder = Path(psutil.Process(below[0]).environ()[host.MARK])
    script.send_signal(sign)
    assert all(gone(pid) for pid in (keeper, *below))
    assert script.wait(10) in (-sign, 130, 1)
    folders.sweep()
    assert not folder.exists()


@processes
def test_the_next_launch_ends_what_is_left_when_the_keeper_is_killed_too(holding):
    """k2-fsa/snowfall#152: a run right after a kill met the left-overs of the killed one."""
    script, keeper, below = holding
    folder = Path(psutil.Process(below[0]).environ()[host.MARK])
    os.kill(script.pid, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    os.kill(script.pid, signal.SIGKILL)
    assert gone(keeper) and gone(script.pid)
    assert launch(lambda comm: comm.rank, 2, backend="gloo") == [0, 1]
    assert all(gone(pid, within_s=0) for pid in below) and not folder.exists()


# torchrun itself

SCRIPT = """
import atexit, os, sys
import torch
from lt_core.comm import world

say = sys.stdout.write  # a whole line at once: ranks share the pipe
def left():
    threads = [open(f"/proc/self/task/{thread}/comm").read().strip() for thread in os.listdir("/proc/self/task")]
    say(f"left, still initialised: {torch.distributed.is_initialized()}, gloo: {'gloo' in ''.join(threads)}\\n")
atexit.register(left)
comm = world()
x = torch.tensor([comm.rank + 1.0])
pair = comm.subset([1, 0])
pair.all_reduce(x)
comm.barrier()
try:
    world()
except ValueError as error:
    say(f"rank {comm.rank} of {comm.size} {x.item()} {comm.backend} {error} on {os.environ['MASTER_PORT']}\\n")
"""


def torchrun(folder, ranks, port, *nodes):
    """A torchrun with the script in the folder, told a port as it is across hosts."""
    where = [f"--nproc-per-node={ranks}", "--master-addr=127.0.0.1", f"--master-port={port}", f"--log-dir={folder}"]
    command = [sys.executable, "-m", "torch.distributed.run", *(nodes or ["--nnodes=1"]), *where, folder / "script.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes)


def said(run):
    """What a torchrun has said when it has ended: its output, and its errors."""
    try:
        return run.communicate(timeout=50)
    finally:
        host.end(lambda: [*host.descendants(run.pid), run.pid])


@processes
def test_a_script_under_torchrun_has_the_same_communicator(tmp_path):
    """And the port that its user has named is the one that is used."""
    (tmp_path / "script.py").write_text(SCRIPT)
    port = free_port()
    out, err = said(torchrun(tmp_path, 2, port))
    check_script(out, err, [0, 1], port)


@processes
def test_torchruns_on_several_nodes_make_one_world(tmp_path):
    """As on two hosts, by torchrun's own options: one for each node, both told where the first one is."""
    (tmp_path / "script.py").write_text(SCRIPT)
    port = free_port()
    runs = [torchrun(tmp_path, 1, port, "--nnodes=2", f"--node-rank={node}") for node in (0, 1)]
    for node, run in enumerate(runs):
        check_script(*said(run), [node], port)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def check_script(out, err, ranks, port):
    """What these ranks, of two, say in SCRIPT."""
    lines = sorted(line for line in out.splitlines() if line.startswith("rank"))
    assert [line[:21] for line in lines] == [f"rank {rank} of 2 3.0 gloo " for rank in ranks], err
    assert all("torch.distributed is initialised already; try: world() once" in line for line in lines)
    assert all(line.endswith(f" on {port}") for line in lines)
    assert out.splitlines().count("left, still initialised: False, gloo: False") == len(ranks)


@processes
def test_a_port_that_is_taken_is_named(tmp_path):
    """A run whose port another one held failed, or met that one, and nobody was told of the port."""
    (tmp_path / "script.py").write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = torchrun(tmp_path, 1, port)
        out, err = said(run)
    assert run.returncode == 1 and f"port: {port}" in err and out == ""


# Bad input


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((print, 0), {}, "a world needs ranks; got 0; expected at least 1"),
        ((print, -2), {}, "a world needs ranks; got -2"),
        ((print, 2.0), {}, "the number of ranks is a whole number; got 2.0"),
        ((3, 2), {}, "there is nothing to launch; got int; expected a function fn(comm, *args)"),
        ((print, 2), {"timeout_s": 0}, "timeout_s is how long a wait may last; got 0"),
        (
            (print, 2),
            {"timeout_s": float("inf")},
            "timeout_s is how long a wait may last; got inf; expected more than 0",
        ),
        (
            (print, 2),
            {"backend": "mpi"},
            "there is no such back end; got 'mpi'; expected auto, threads, gloo, shared_memory, nccl",
        ),
        ((threading.Lock().acquire, 2), {"backend": "gloo"}, "the function cannot be sent to another process ("),
        (
            (print, 2, 1, threading.Lock()),
            {"backend": "gloo"},
            "argument 2 cannot be sent to another process (can",
        ),
    ],
)
def test_bad_input_is_named_before_anything_starts(arguments, options, text):
    assert refused(lambda: launch(*arguments, **options)).startswith(text)


def test_nccl_without_gpus_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    text = refused(lambda: launch(print, 2, backend="nccl"))
    assert text.startswith("nccl needs a GPU for each of 2 ranks; got ") and text.endswith("try: backend='gloo'")


def test_a_full_folder_is_named(monkeypatch):
    monkeypatch.setattr(folders, "ALWAYS_BYTES", 1 << 60)
    assert refused(lambda: launch(print, 2, backend="gloo")).startswith(f"the folder {folders.root()} is full; got ")


def test_world_needs_torchrun(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert refused(world).startswith("world() needs torchrun around it; try: torchrun --nproc-per-node 4 script.py")


def test_the_plug_in_is_installed_and_light():
    assert rendezvous.installed()
    code = "import sys; from lt_core.comm.rendezvous import create; create(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "False\n"
