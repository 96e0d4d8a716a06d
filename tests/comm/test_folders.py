"""A launch's folder is the user's alone, says by its lock that it lives, and is swept once it does not."""

import os
import shutil
import stat
import subprocess
import tempfile

import pytest

from lt_core.base.errors import UserError
from lt_core.comm import folders, host


@pytest.fixture(autouse=True)
def runtime(monkeypatch, tmp_path_factory):
    """A place for runtime files of these tests alone, its path short."""
    short = tempfile.mkdtemp(prefix="lt-", dir="/tmp")
    monkeypatch.setenv("XDG_RUNTIME_DIR", short)
    yield short
    shutil.rmtree(short)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_folder_is_private_and_locked(runtime):
    path, lock = folders.make()
    assert (path.parent, mode(path), mode(path.parent)) == (folders.root(), 0o700, 0o700)
    assert str(path).startswith(runtime) and folders.sweep() == []
    os.close(lock)
    assert folders.sweep() == [path] and not path.exists()


def test_open_permissions_are_closed(runtime):
    os.mkdir(f"{runtime}/lt_core", 0o777)
    assert mode(folders.root()) == 0o700


def test_a_folder_that_is_anothers_is_refused(runtime, monkeypatch):
    folders.root()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(UserError, match=rf"the folder {runtime}/lt_core is not ours alone; got owner \d+"):
        folders.root()


def test_a_link_in_its_place_is_refused(runtime, tmp_path):
    os.symlink(tmp_path, f"{runtime}/lt_core")
    with pytest.raises(UserError, match="is not ours alone"):
        folders.root()


def test_a_full_disk_is_named(runtime, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 10**6, 10**6))
    with pytest.raises(UserError, match=f"the folder {runtime}/lt_core is full; got 1 MB free; expected 4.19 MB"):
        folders.make()
    with pytest.raises(UserError, match=r"expected 104 MB; try: XDG_RUNTIME_DIR"):
        folders.make(10**8)


@pytest.mark.parametrize("why", ["deep", "on a network"])
def test_a_place_where_sockets_fail_is_passed_over(monkeypatch, tmp_path, why):
    deep = tmp_path / ("d" * 60 if why == "deep" else "n")
    deep.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(deep))
    monkeypatch.setattr(folders, "LONGEST", 60 if why == "deep" else 1000)
    monkeypatch.setattr(host, "mounts", lambda: {} if why == "deep" else {"/": "ext4", str(tmp_path): "nfs4"})
    assert str(folders.root()) == f"/tmp/lt_core-{os.getuid()}"


def marked(place):
    """A living process of that launch, once it has its environment: that is a moment after its start."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(
        ["sh", "-c", "echo up; read nothing"], env={**os.environ, host.MARK: str(place)}, **pipes
    )
    assert process.stdout.readline() == b"up\n"
    return process


def test_sweeping_ends_what_a_dead_launch_left_running():
    dead, lock = folders.make()
    os.close(lock)
    alive, held = folders.make()
    with marked(dead) as left, marked(alive) as kept:
        assert folders.sweep() == [dead]
        assert left.wait(5) == -9 and kept.poll() is None
        kept.kill()
    os.close(held)


def test_a_folder_being_born_is_left_alone(runtime):
    born = folders.root() / ".new-abc"
    born.mkdir()
    assert folders.sweep() == []
    os.utime(born, (0, 0))
    assert folders.sweep() == [born]
