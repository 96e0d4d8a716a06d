"""A file in shared memory is its maker's alone, says whose it is, and goes: at its end, or when its maker has died."""

import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lt_core.comm import host
from lt_core.comm.shared_memory import names

DEAD = f"lt_core {os.getuid()} {2**22 + 1} a-boot 123\n".encode()  # a number that no process has


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder in place of the machine's shared memory."""
    monkeypatch.setattr(names, "folder", lambda: tmp_path)
    return tmp_path


def left(place, header, name="left"):
    """A file that somebody left."""
    path = place / f"{names.PREFIX}{name}"
    path.write_bytes(header.ljust(names.HEADER_BYTES, b"\0"))
    return path


@pytest.mark.skipif(not host.LINUX, reason="shared memory has names on Linux only")
def test_the_machine_has_shared_memory():
    found = names.folder()
    assert found and host.mounts()[str(found)] == "tmpfs"


def test_a_new_file_is_ours_alone_and_says_so(place):
    with names.made(10_000) as path:
        found = path.stat()
        user, pid, boot, start = path.read_bytes().partition(b"\n")[0].decode().split(" ")[1:]
        assert stat.S_IMODE(found.st_mode) == 0o600 and found.st_size == 10_000
        assert found.st_blocks * 512 >= 10_000  # its room is found now
        assert (int(user), int(pid), f"{boot} {start}") == (os.getuid(), os.getpid(), host.life(os.getpid()))
    assert list(place.iterdir()) == []


def test_its_name_goes_also_when_something_fails(place):
    with pytest.raises(KeyboardInterrupt), names.made(10_000):
        raise KeyboardInterrupt
    assert list(place.iterdir()) == []


def test_names_are_not_to_be_guessed(place):
    with names.made(4096) as one, names.made(4096) as other:
        assert one.name[-32:] != other.name[-32:] and len(one.name) - len(names.PREFIX) > 32


def test_a_name_that_exists_is_not_taken(place, monkeypatch):
    """Whoever knew the name could have laid a file, or a link to somebody's file, in our way."""
    monkeypatch.setattr(names.secrets, "token_hex", lambda nbytes: "known")
    path = place / f"{names.PREFIX}{os.getuid()}-known"
    path.symlink_to(place / "victim")
    with pytest.raises(FileExistsError), names.made(4096):
        pass
    assert not (place / "victim").exists() and path.is_symlink()


def test_what_the_dead_left_is_swept(place):
    path = left(place, DEAD)
    assert names.sweep() == [path.name]
    assert not path.exists()


def test_the_number_of_a_dead_process_may_be_used_again(place):
    left(place, f"lt_core {os.getuid()} {os.getpid()} an-earlier-boot 1\n".encode())
    assert len(names.sweep()) == 1


def test_what_the_living_hold_is_not_swept(place):
    with names.made(4096) as path:
        assert names.sweep() == [] and path.exists()
    path = left(place, names.header(os.getpid()))  # not locked, and its owner alive
    assert names.sweep() == [] and path.exists()


def test_what_is_locked_is_not_swept(place):
    """In another container numbers of processes mean nothing."""
    path = left(place, DEAD)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert names.sweep() == []


def test_what_is_being_made_is_not_swept_yet(place):
    path = left(place, b"")
    assert names.sweep() == []
    old_s = time.time() - 2 * names.NEWBORN_S
    os.utime(path, (old_s, old_s))
    assert names.sweep() == [path.name]


def test_a_sweep_does_not_hold_what_is_being_made(place, monkeypatch):
    """It took the lock to look, just before the maker did: that found it taken, and there was no shared memory."""
    flock, looks = fcntl.flock, []

    def looked_at_first(fd, how):
        if not looks:
            looks.append(os.open(next(place.iterdir()), os.O_RDONLY))  # somebody's sweep has come so far
            looks.append(names._left(looks[0]))
        flock(fd, how)

    monkeypatch.setattr(names.fcntl, "flock", looked_at_first)
    with names.made(4096) as path:
        assert path.exists() and looks[1] is False
    os.close(looks[0])


def test_what_is_another_users_is_not_touched(place, monkeypatch):
    path = left(place, DEAD)
    monkeypatch.setattr(names.os, "getuid", lambda: path.stat().st_uid + 1)
    assert names.sweep() == [] and path.exists()


def test_links_and_other_files_are_not_touched(place):
    victim = place / "victim"
    victim.write_bytes(DEAD)
    (place / f"{names.PREFIX}link").symlink_to(victim)
    assert names.sweep() == [] and victim.exists()


@pytest.mark.processes
def test_a_maker_that_was_killed_is_swept_after(place):
    script = (
        "import os, sys, pathlib\n"
        "from lt_core.comm.shared_memory import names\n"
        "names.folder = lambda: pathlib.Path(sys.argv[1])\n"
        "with names.made(4096):\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(place)], cwd=Path(names.__file__).parents[3], timeout=50)
    (path,) = place.iterdir()
    assert names.sweep() == [path.name]


def test_a_full_place_is_said_before_it_is_filled(place):
    assert names.no_room(4096) == ""
    assert names.no_room(1 << 60).startswith(f"{place} has ") and names.no_room(1 << 60).endswith("needed")


def test_no_place_at_all(monkeypatch):
    monkeypatch.setattr(names, "folder", lambda: None)
    assert names.no_room(1) == "there is no shared memory" and names.sweep() == []
