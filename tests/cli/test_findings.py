"""The words of the doctor on machines that this one is not: each lack is named with its next step, and stops or not."""

from dataclasses import replace

import pytest

from lt_core.cli.facts import Facts, Gpu
from lt_core.cli.findings import Finding, findings
from tests.cli.machines import GB, H200, WHOLE


def about(thing: str, **lacks: object) -> Finding:
    (one,) = [one for one in findings(replace(WHOLE, **lacks)) if one.thing == thing]
    return one


def test_a_machine_that_has_everything_needs_no_step():
    found = findings(WHOLE)
    assert [one.word for one in found] == ["ok"] * len(found)
    assert [one.thing for one in found] == [
        "system",
        "cores",
        "memory",
        "ranks meet in",
        "shared memory",
        "GPUs",
        "torch's wires",
        "auto takes",
        "rendezvous",
        "two ranks",
        "link",
    ]


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ("system", "Linux 6.8.0 (x86_64), Python 3.11.9, torch 2.13.0+cu130"),
        ("cores", "16"),
        ("memory", "64 GB free, room for 273 ranks of 234 MB"),
        ("GPUs", "8 x NVIDIA H200 (141 GB), reading each other's memory"),
        ("auto takes", "nccl for up to 8 ranks (a GPU each), gloo on the CPU for more"),
        ("two ranks", "all-reduce of 1,024 numbers over nccl: right on both, 4.25 s from start to end"),
        ("link", "25 us latency, 12 Gbit/s, between them"),
    ],
)
def test_what_was_found_is_said_in_numbers(thing, text):
    assert about(thing).found == text


@pytest.mark.parametrize(
    ("thing", "lacks", "word", "step"),
    [
        ("system", {"platform": "darwin"}, "note", "named fall-backs"),
        ("system", {"platform": "darwin"}, "note", "untested"),
        ("system", {"platform": "freebsd14"}, "note", "only Linux is tested"),
        ("cores", {"cores": 1}, "note", "run labs with 2 ranks"),
        ("memory", {"memory_bytes": GB // 4}, "STOP", "two ranks need 468 MB: close programs"),
        ("memory", {"memory_bytes": GB * 3 // 4}, "note", "ltlab ring --ranks 3"),
        ("memory", {"memory_bytes": GB * 3 // 2}, "note", "make test starts 8 ranks"),
        ("ranks meet in", {"scratch_bytes": 2**20}, "STOP", "need 4.19 MB: free some, or set XDG_RUNTIME_DIR"),
        ("shared memory", {"shared_bytes": 64 * 2**20}, "note", "--shm-size=1g"),
        ("shared memory", {"shared_bytes": None}, "note", "not needed"),
        ("GPUs", {"gpus": (), "driver": False}, "note", "not needed: ranks are processes on the CPU"),
        ("GPUs", {"gpus": (), "torch": "2.13.0+cpu"}, "note", "torch 2.13.0+cpu cannot use the NVIDIA driver"),
        ("torch's wires", {"backends": ()}, "STOP", "built without gloo: pip install torch"),
        ("torch's wires", {"backends": ("gloo",)}, "note", "install a CUDA build of torch"),
        ("rendezvous", {"rendezvous": False}, "note", "torchrun opens a port"),
        ("two ranks", {"pair": None, "trouble": "Deadline: ranks [1] did not come up"}, "STOP", "below"),
    ],
)
def test_each_lack_has_a_next_step(thing, lacks, word, step):
    one = about(thing, **lacks)
    assert one.word == word
    assert step in one.step


@pytest.mark.parametrize(
    ("lacks", "text"),
    [
        ({"gpus": ()}, "gloo on the CPU: there is no GPU for each rank"),
        ({"backends": ("gloo",)}, "gloo on the CPU: this torch has no NCCL"),
        ({"gpus": (H200,)}, "nccl for 1 rank (one GPU), gloo on the CPU for more"),
    ],
)
def test_what_auto_takes_is_said_with_its_reason(lacks, text):
    assert about("auto takes", **lacks).found == text


def test_gpus_of_two_kinds_are_counted_by_kind():
    found = about("GPUs", gpus=(H200, H200, Gpu("NVIDIA A100", 80 * GB)), peers=False).found
    assert found == "2 x NVIDIA H200 (141 GB), 1 x NVIDIA A100 (80 GB), not reading each other's memory"


def test_on_native_windows_one_sentence_says_where_to_go():
    (one,) = findings(Facts("win32", "Windows 11 (AMD64)", "3.12.4"))
    assert one.stops
    assert all(way in one.step for way in ("not supported", "WSL 2", "container", "Binder"))


def test_a_broken_launch_leaves_no_line_about_the_link():
    found = findings(replace(WHOLE, pair=None, trouble="RankError: rank 1 failed first"))
    assert "link" not in [one.thing for one in found]
