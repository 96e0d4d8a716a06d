"""Our own messages stay out of the traffic; what another thread sends meanwhile, and what comes after, is counted."""

import threading
from types import SimpleNamespace

import pytest

from lt_core.base.traffic import Traffic
from lt_core.comm.uncounted import uncounted


def test_only_what_this_thread_sends_inside_is_left_out():
    """The traffic was put back to what it had been: what a bucket under way had counted meanwhile was gone."""
    comm = SimpleNamespace(traffic=Traffic())

    def send():
        comm.traffic.counted.add(1, 100)
        comm.traffic.by_law.add(2, 7)

    with uncounted(comm):
        send()
        with uncounted(comm):
            send()
        send()
        other = threading.Thread(target=send)
        other.start()
        other.join()
    assert (comm.traffic.counted.bytes, comm.traffic.by_law.bytes, comm.traffic.messages) == (100, 7, 2)
    with pytest.raises(KeyError), uncounted(comm):
        raise KeyError
    send()
    assert comm.traffic.bytes == 214
