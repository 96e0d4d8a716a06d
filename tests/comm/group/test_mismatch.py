"""Clause 3: ranks that call different things are told so, both calls named, before gloo gives wrong numbers or dies."""

import pytest

from lt_core.base.errors import Mismatch, RankError

pytestmark = pytest.mark.processes
SAME = "; try: make the same calls in the same order on every rank"


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("comm.all_reduce(x)", "comm.barrier()", "rank 0 calls all_reduce of (2, 3) float32, rank 1 calls barrier"),
        (
            "comm.all_reduce(x)",
            "comm.all_reduce(x.reshape(3, 2))",
            "rank 0 calls all_reduce of (2, 3) float32, rank 1 calls all_reduce of (3, 2) float32",
        ),
        (
            "comm.all_reduce(x)",
            "comm.all_reduce(x.double())",
            "rank 0 calls all_reduce of (2, 3) float32, rank 1 calls all_reduce of (2, 3) float64",
        ),
        (
            "comm.broadcast(x, 0)",
            "comm.broadcast(x, 1)",
            "rank 0 calls broadcast of (2, 3) float32 from rank 0, "
            "rank 1 calls broadcast of (2, 3) float32 from rank 1",
        ),
        ("comm.subset([0, 1])", "comm.barrier()", "rank 0 calls subset [0, 1], rank 1 calls barrier"),
    ],
)
def test_two_calls_that_differ_are_both_named(cell, first, second, said):
    cell("kept = 'kept'\nx = torch.ones(2, 3)")
    seen = cell(f"comm.barrier()\nif rank == 0:\n    {first}\nelse:\n    {second}")
    assert isinstance(seen.error, RankError) and isinstance(seen.error.__cause__, Mismatch)
    assert seen.error.message.partition(": ")[2] == f"{said}{SAME}"
    assert f"line {3 if seen.error.rank == 0 else 5} of the cell" in str(seen.error)
    assert seen.seconds < 2
    again = cell("comm.all_reduce(x)\nkept, x[0, 0].item()")
    assert again.values == dict.fromkeys((0, 1), "('kept', 2.0)") and again.lines == []


def test_it_is_seen_in_a_subset_by_the_whole_groups_numbers(cell):
    seen = cell("turned = comm.subset([1, 0])\nturned.all_reduce(torch.ones(1 + rank))")
    said = f"collective 1: rank 0 calls all_reduce of (1,) float32, rank 1 calls all_reduce of (2,) float32{SAME}"
    assert seen.error.message == said


def test_it_is_seen_when_a_call_is_begun(cell):
    seen = cell("work = comm.start('all_reduce', torch.ones(1 + rank))\nwork.wait()")
    assert seen.error.kind == "Mismatch" and seen.error.message.startswith(
        "collective 1: rank 0 calls all_reduce of (1,)"
    )


def test_a_short_message_is_seen(cell):
    text = (
        "x = torch.ones(3 if rank == 0 else 4)\ncomm.exchange([(x, 1)] if rank == 0 else [], [(x, 0)] if rank else [])"
    )
    seen = cell(text)
    assert seen.error.kind == "Mismatch"
    assert seen.error.message.startswith(
        "message 1 from rank 0 to rank 1 does not fit its buffer; got 3 float32 sent, room for 4 float32"
    )


def test_a_short_message_frees_the_peer_also_where_the_cell_goes_on(cell):
    text = (
        "from lt_core.base.errors import Aborted, Mismatch\nsaid, x = '', torch.ones(3 + rank)\n"
        "try: comm.exchange([(x, 1 - rank)], [(torch.ones(4), 1 - rank)])\n"
        "except (Aborted, Mismatch) as error: said = str(error)\nsaid"
    )
    seen = cell(text, timeout_s=20)
    assert all("message 1 from rank 0 to rank 1 does not fit its buffer" in said for said in seen.values.values())


def test_who_is_too_far_ahead_waits_for_the_others(cell):
    """Else what it had called first were forgotten when the late one comes."""
    seen = cell("x = torch.ones(2)\nif rank == 0:\n    for _ in range(100):\n        comm.start('broadcast', x, 0)")
    said = "rank 0 waits in broadcast of (2,) float32 from rank 0 (collective 65 of this cell), line 4"
    assert seen.error.message == f"rank 1 has ended the cell, but {said}"


def test_every_one_of_many_is_caught(cell):
    """The later of two always sees the earlier, however close they come; what is right raises nothing."""
    text = (
        "caught = 0\nfrom lt_core.base.errors import Aborted, Mismatch\n"
        "for i in range(300):\n    comm.all_reduce(torch.ones(1 + i % 3))\n"
        "try:\n    comm.all_reduce(torch.ones(2 + rank))\nexcept (Aborted, Mismatch):\n    caught = 1\ncaught"
    )
    for _ in range(20):
        seen = cell(text)
        assert seen.values == {0: "1", 1: "1"}


def test_gloo_itself_would_end_the_process_and_is_reported_with_its_own_line(group, cell):
    """Past `comm` nobody checks: raw torch.distributed. A new group starts, and says what was lost."""
    cell("kept = 1")
    seen = cell("import torch.distributed as dist\nx = torch.ones(2 + 8 * rank)\ndist.all_reduce(x)")
    assert seen.error.kind == "died"
    assert seen.error.message.startswith("signal 6 (SIGABRT); its last line: what():  [enforce fail at ")
    assert "op.preamble.length <= op.nbytes" in seen.error.message
    assert any("gloo::EnforceNotMet" in text for _, text in seen.texts("err"))
    assert not group.alive
    again = cell("'kept' in dir()")
    assert again.values == {0: "False", 1: "False"}
    (note,) = again.lines
    assert note.ranks == () and note.text.startswith("a new group starts, without the variables: rank ")
    assert "signal 6" in note.text
