"""Messages between kernel and ranks: what nobody with the key has sent is refused before it is unpickled, both ways."""

import os
import pickle
import stat
from pathlib import Path
from typing import ClassVar

import pytest
import zmq

from lt_core.base.errors import UserError
from lt_core.comm.group import wire
from lt_core.comm.group.wire import ASK, SAY, Refused, Wire


class Bomb:
    """An object that tells when it is unpickled."""

    went_off: ClassVar[list[str]] = []

    def __reduce__(self):
        return self.went_off.append, ("bang",)


def test_a_message_comes_back():
    mine = Wire(b"k" * 32)
    assert mine.unpack(SAY, mine.pack(SAY, {"a": [1, 2]})) == {"a": [1, 2]}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1] + b"!",
        lambda data: b"!" + data[1:],
        lambda data: data[32:],
        lambda data: data[:32],
        lambda data: data + b"!",
        lambda data: b"",
    ],
)
def test_a_spoilt_message_is_refused_unread(spoil):
    mine = Wire(b"k" * 32)
    with pytest.raises(Refused):
        mine.unpack(SAY, spoil(mine.pack(SAY, Bomb())))
    assert Bomb.went_off == []


def test_a_wrong_key_and_a_wrong_way_are_refused():
    data = Wire(b"k" * 32).pack(SAY, Bomb())
    with pytest.raises(Refused, match="wrong key"):
        Wire(b"K" * 32).unpack(SAY, data)
    with pytest.raises(Refused, match="wrong key"):
        Wire(b"k" * 32).unpack(ASK, data)  # a rank's own words, sent back to it
    assert Bomb.went_off == []


def test_what_is_too_large_is_named_with_its_size(monkeypatch):
    with pytest.raises(UserError) as caught:
        wire.refuse_large("--in big, a Tensor,", (1 << 30) + 1)
    assert str(caught.value) == (
        "--in big, a Tensor, is too large to be sent; got 1.07 GB; expected at most 1 GiB; "
        "try: a file that both can read"
    )
    monkeypatch.setattr(wire, "CAP_BYTES", 40)
    with pytest.raises(Refused):
        Wire(b"k").unpack(SAY, Wire(b"k").pack(SAY, "longer than that"))


def test_the_key_is_the_users_alone(tmp_path):
    key = wire.new_key(tmp_path)
    assert len(key) == 32 and (tmp_path / wire.KEY).read_bytes() == key
    assert stat.S_IMODE(os.stat(tmp_path / wire.KEY).st_mode) == 0o600


@pytest.mark.processes
def test_a_stranger_at_the_socket_is_not_heard(group, cell):
    """It has found the socket, though not the key: the kernel drops what it says, and works on."""
    cell("x = 1")
    members = group._standing.members
    before = members.refused
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.setsockopt(zmq.LINGER, 500)
        stranger.setsockopt(zmq.IDENTITY, b"rank 7")
        stranger.connect(f"ipc://{members.folder / wire.SOCKET}")
        stranger.send(b"0" * 32 + pickle.dumps(Bomb()))
        stranger.send_multipart([b"one", b"two", pickle.dumps(Bomb())])
        stranger.send(b"")
        while members.refused < before + 3:
            assert cell("x").values == {0: "1", 1: "1"}
    assert Bomb.went_off == []


@pytest.mark.processes
def test_a_rank_does_not_hear_a_stranger_either(group, cell):
    cell("x = 1")
    members = group._standing.members
    members._socket.send_multipart([b"rank 0", b"0" * 32 + pickle.dumps(Bomb())])
    seen = cell("x")
    assert seen.values == {0: "1", 1: "1"}
    assert ((0,), "refused: a message with a wrong key") in seen.texts("err")


@pytest.mark.processes
def test_the_key_is_in_no_command_line(group, cell):
    cell("")
    status = group.status()
    key = (Path(status.folder) / wire.KEY).read_bytes()
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (status.keeper, *status.pids)]
    environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in (status.keeper, *status.pids)]
    assert not any(key in text or key.hex().encode() in text for text in lines + environments)
