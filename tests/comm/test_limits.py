"""A container's limits count where they are below what the machine has, in both versions of control groups."""

import psutil
import pytest

from lt_core.comm import host, limits


@pytest.fixture
def stated(monkeypatch, tmp_path):
    """Files of control groups that state what a test gives."""
    monkeypatch.setattr(limits, "_GROUPS", tmp_path)
    monkeypatch.setattr(host, "cores", lambda: 8)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_max", ".max").replace("cfs", "cpu.cfs")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text + "\n")

    return write


def test_without_a_container_the_machine_counts(stated):
    assert limits.cores() == 8
    assert limits.memory_bytes() == psutil.virtual_memory().total
    assert 0 < limits.free_bytes() <= psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu_max": "200000 100000"}, 2),
        ({"cpu_max": "250000 100000"}, 3),
        ({"cpu_max": "1000 100000"}, 1),
        ({"cpu_max": "9900000 100000"}, 8),
        ({"cpu_max": "max 100000"}, 8),
        ({"cpu__cfs_quota_us": "300000", "cpu__cfs_period_us": "100000"}, 3),
        ({"cpu__cfs_quota_us": "-1", "cpu__cfs_period_us": "100000"}, 8),
    ],
)
def test_cores(stated, files, cores):
    stated(**files)
    assert limits.cores() == cores


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (("memory.max", "memory.current"), "inactive_file"),
        (("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"), "inactive_file 1\ntotal_inactive_file"),
    ],
    ids=["version 2", "version 1"],
)
def test_memory(monkeypatch, tmp_path, names, files):
    monkeypatch.setattr(limits, "_GROUPS", tmp_path)
    limit, used = (tmp_path / name for name in names)
    limit.parent.mkdir(exist_ok=True)
    limit.write_text("1000000\n")
    used.write_text("400000\n")
    assert (limits.memory_bytes(), limits.free_bytes()) == (1_000_000, 600_000)
    (limit.parent / "memory.stat").write_text(f"anon 50000\n{files} 300000\nslab 7\n")
    assert limits.free_bytes() == 900_000  # files that were read count as used until somebody needs their room
    limit.write_text("max\n")
    assert limits.memory_bytes() == psutil.virtual_memory().total and limits.free_bytes() > 600_000
    limit.write_text(f"{1 << 62}\n")  # version 1 says so where there is none
    assert limits.memory_bytes() == psutil.virtual_memory().total and limits.free_bytes() > 600_000
