"""An error of gloo's in our words: whole, and the same each time."""

from types import SimpleNamespace

import pytest

from lt_core.comm.begun import told

PAIR = "[/__w/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] "
CAUSE = ". This is typically caused by a remote worker crashing. Check the logs of the remote worker."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{PAIR}Read error [127.0.0.1]:49571: Broken pipe{CAUSE}", "Read error: Broken pipe"),
        (f"{PAIR}Connection closed by peer [::1]:59800{CAUSE}", "Connection closed by peer"),
        (f"{PAIR}Connection closed by peer [127.0.0.1]:59800", "Connection closed by peer"),
    ],
)
def test_a_lost_peer_is_told_without_its_address(text, line):
    """It ended in the middle of the address: Read error [127."""
    comm = SimpleNamespace(rank=1, ended="", timeout_s=60.0)
    assert str(told(comm, "barrier", RuntimeError(text), "")) == f"rank 1 lost a peer in barrier ({line})"
