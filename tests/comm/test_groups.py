"""A group of processes can be ended whatever has become of the folder in which its ranks met."""

import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lt_core.base.errors import Aborted
from lt_core.comm import host
from lt_core.comm.groups import Carrier
from lt_core.comm.meeting import InFolder
from lt_core.comm.processes import Processes


@pytest.fixture
def wires():
    """The two ends of each of two connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = [socket.create_connection(server.getsockname()) for _ in range(2)]
        far = [server.accept()[0] for _ in near]
    for end in far:
        end.settimeout(5)
    yield list(zip(near, far))
    for end in (*near, *far):
        end.close()


def over(folder, name, wire):
    """The communicator of rank 0 of 2 over one connection."""
    (mine,) = (one for one in host.sockets() if one[0] == wire.fileno())
    torchs = SimpleNamespace(name=lambda: "gloo")
    return Processes(Carrier(torchs, name, InFolder(folder), frozenset([mine])), 0, 2, torch.device("cpu"), 5.0)


def full(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("how", ["gone", "full"])
def test_where_the_folder_takes_nothing_the_reason_stands_and_subsets_end_too(tmp_path, monkeypatch, wires, how):
    """The folder's OSError came in place of the reason, and whoever waited in a subset went on waiting."""
    folder = tmp_path / "launch"
    folder.mkdir()
    world, subset = (over(folder, name, near) for name, (near, _) in zip(("world", "world.1"), wires))
    world._subsets[0, 1] = subset
    if how == "full":
        monkeypatch.setattr(Path, "write_text", full)
    else:
        shutil.rmtree(folder)
    world.abort("rank 0 raised ValueError: boom")
    for comm in (world, subset):
        with pytest.raises(Aborted, match="rank 0 raised ValueError: boom"):
            comm.barrier()
    assert [far.recv(1) for _, far in wires] == [b"", b""]  # who waits at the other ends is freed
