"""Ranks that share memory are a group as any other: errors, interrupts, deaths; and nothing stays in shared memory."""

from pathlib import Path

import pytest

from lt_core.base.errors import RankError
from lt_core.comm.group import Group, Interrupted
from lt_core.comm.shared_memory import names
from tests.comm.group.conftest import run
from tests.comm.group.test_first_culprit import followed
from tests.comm.group.test_interrupt import GO, Screen, waited
from tests.sharing import ROOM_BYTES

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(bool(names.no_room(ROOM_BYTES)), reason="too little /dev/shm"),
]


@pytest.fixture(scope="module")
def shared(own_root):
    """Two ranks for this module."""
    held = Group(2, backend="shared_memory", owner="shared.ipynb", alone=False)
    yield held
    held.stop()
    assert names.sweep() == []


def test_sums_subsets_messages_and_buffers_in_place(shared):
    text = (
        "from lt_core.comm.buffers import allocate\nkept, x = rank, torch.arange(3.) * (rank + 1)\ncomm.all_reduce(x)\n"
        "flat, y = allocate(comm, 4), torch.zeros(2)\nflat += rank + 1\ncomm.all_reduce(flat)\n"
        "pair = comm.subset([1, 0])\npair.exchange([(x[:2], 1 - pair.rank)], [(y, 1 - pair.rank)])\n"
        "place = flat.untyped_storage().data_ptr()\n"
        "mapped = [line.split()[0].split('-') for line in open('/proc/self/maps') if 'lt_core-' in line]\n"
        "held = any(int(first, 16) <= place < int(end, 16) for first, end in mapped)\n"
        "comm.backend, pair.backend, x.tolist(), flat.tolist(), y.tolist(), held"
    )
    told = ("shared_memory", "shared_memory", [0.0, 3.0, 6.0], [3.0] * 4, [0.0, 3.0], True)
    assert run(shared, text).values == dict.fromkeys((0, 1), str(told))
    assert shared.status().ranks == "2 ranks over shared_memory of shared.ipynb"


def test_a_rank_that_raises_frees_the_others_and_all_keep_their_variables(shared):
    run(shared, "kept = rank")
    seen = run(shared, "if rank:\n    raise ValueError('boom')\ncomm.all_reduce(torch.ones(3))")
    assert (seen.error.rank, seen.error.kind) == (1, "ValueError")
    assert followed(seen.error) == {0: "Aborted: rank 1 raised ValueError: boom"}
    again = run(shared, "x = torch.ones(1)\ncomm.all_reduce(x)\nkept, x.item(), comm.backend")
    assert again.values == {r: f"({r}, 2.0, 'shared_memory')" for r in (0, 1)}


def test_a_mismatch_is_seen_before_anything_moves(shared):
    error = run(shared, "comm.all_reduce(torch.ones(2, 3) if rank else torch.ones(3, 2))").error
    assert error.kind == "Mismatch" and "rank 1 calls all_reduce of (2, 3) float32" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "comm.barrier() if rank else __import__('time').sleep(60)",
        "comm.exchange([], [(torch.ones(1), 1 - rank)])",
        "work = comm.subset([1, 0]).start('all_reduce', torch.ones(1)) if rank else comm.subset([1, 0])\n"
        "work.wait() if rank else __import__('time').sleep(60)",
    ],
)
def test_an_interrupt_gives_the_prompt_back(shared, text):
    pids, screen = shared.status().pids, Screen()
    seen = waited(run(shared, GO + text, lines=screen), screen)
    assert isinstance(seen.error, Interrupted) and seen.seconds < 1
    again = run(shared, "comm.barrier()\nkept")
    assert again.values == {0: "0", 1: "1"} and shared.status().pids == pids


def test_a_rank_that_dies_where_its_memory_has_a_name_leaves_none(shared):
    text = (
        "import os\nfrom lt_core.comm.shared_memory import names\nif rank == 1:\n"
        "    with names.made(1 << 20) as path:\n        print(path, flush=True)\n        os._exit(7)\ncomm.barrier()"
    )
    seen = run(shared, text)
    assert isinstance(seen.error, RankError) and (seen.error.rank, seen.error.message) == (1, "exit code 7")
    ((_, path),) = seen.texts()
    assert path.startswith(str(names.folder())) and not Path(path).exists() and not shared.alive
    shared.restart()
    assert run(shared, "x = torch.ones(1)\ncomm.all_reduce(x)\nx.item(), 'kept' in dir()").values[0] == "(2.0, False)"


def test_a_full_dev_shm_is_told_and_ranks_talk_over_gloo_until_there_is_room(shared):
    """The communicator is made anew after a cell that failed: here its memory finds no room, and later it does."""
    full = "from lt_core.comm.shared_memory import names\nkept, plain = rank, names.no_room\n"
    full += "names.no_room = lambda nbytes: '/dev/shm is full'\nif rank:\n    1 / 0"
    assert run(shared, full).error.kind == "ZeroDivisionError"
    total = "x = torch.arange(3.) * (rank + 1)\ncomm.all_reduce(x)\nkept, comm.backend, x.tolist()"
    seen = run(shared, total)
    assert seen.values == {r: f"({r}, 'gloo', [0.0, 3.0, 6.0])" for r in (0, 1)}
    assert [text for _, text in seen.texts("err")] == ["lt_core: ranks talk over gloo: /dev/shm is full"]
    run(shared, "names.no_room = plain\nif rank:\n    1 / 0")
    again = run(shared, total)
    assert again.values == {r: f"({r}, 'shared_memory', [0.0, 3.0, 6.0])" for r in (0, 1)} and again.lines == []
