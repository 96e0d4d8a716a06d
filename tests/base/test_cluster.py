"""Machines are data: a wire's seconds are latency plus bytes over bandwidth, and pairs of ranks find their wire."""

import pytest

from lt_core.base.cluster import (
    A100_NODE,
    H200_NODE,
    INFINIBAND_NDR,
    KITCHEN,
    MATCHBOX,
    NVLINK4,
    OFFICE,
    PCIE_NODE,
    RACK,
    SHOEBOX,
    Cluster,
    Wire,
)
from lt_core.base.errors import UserError


def test_seconds_of_a_message():
    assert Wire("w", 0.5, 100.0).seconds(50) == 1.0
    assert [w.seconds(0) for w in (RACK, OFFICE, KITCHEN)] == [10e-6, 1e-4, 1e-3]
    assert OFFICE.seconds(125_000_000) == pytest.approx(1.0001)


def test_wires_as_text():
    assert [str(w) for w in (RACK, OFFICE, KITCHEN)] == [
        "rack (10 Gbit/s, 10 us)", "office (1 Gbit/s, 100 us)", "kitchen (100 Mbit/s, 1 ms)",
    ]  # fmt: skip
    assert Wire.parse("1 Gbit/s 0.1 ms", "office") == OFFICE


@pytest.mark.parametrize("text", ["", "1 Gbit/s", "1 Gbit/s 0.1 ms 3"])
def test_what_is_no_wire(text):
    with pytest.raises(UserError, match=r"is no wire; expected bandwidth and latency; try: 1 Gbit/s 0.1 ms"):
        Wire.parse(text)


@pytest.mark.parametrize("latency_s, bytes_per_s", [(0.0, 0.0), (0.0, -1.0), (-1.0, 1e9), (float("nan"), 1e9)])
def test_a_wire_on_which_nothing_arrives(latency_s, bytes_per_s):
    """Shaped with it, a rank divided by zero, or ran as if there were no wire."""
    with pytest.raises(UserError, match=r"slow is no wire; got .* bytes/s; expected a latency of 0 or more, a rate"):
        Wire("slow", latency_s, bytes_per_s)


def test_devices_as_text():
    assert [str(d) for d in (SHOEBOX, MATCHBOX, H200_NODE.device)] == [
        "shoebox (25.2 MB)", "matchbox (6.29 MB)", "H200 (141 GB)",
    ]  # fmt: skip


def test_ranks_are_numbered_node_by_node():
    two = H200_NODE.times(2)
    assert (two.size, two.name, [two.node(r) for r in (0, 7, 8, 15)]) == (16, "2 x 8 x H200", [0, 0, 1, 1])
    assert (two.wire(0, 7), two.wire(7, 8)) == (NVLINK4, INFINIBAND_NDR)
    assert H200_NODE.times(1).name == "8 x H200"


def test_the_presets():
    assert [(c.size, c.device.name) for c in (H200_NODE, A100_NODE, PCIE_NODE)] == [
        (8, "H200"), (8, "A100"), (4, "RTX 4090"),
    ]  # fmt: skip
    assert PCIE_NODE.outer is not None and PCIE_NODE.outer.bytes_per_s == 10e9 / 8


def test_what_is_refused():
    with pytest.raises(UserError, match="none has no devices; got 1 x 0; expected at least 1 x 1"):
        Cluster("none", SHOEBOX, 0, RACK)
    with pytest.raises(UserError, match="two has 2 nodes and no wire between them; try: give `outer`"):
        Cluster("two", SHOEBOX, 1, RACK, nodes=2)
    with pytest.raises(UserError, match="8 x H200 has no rank 8; expected 0 to 7"):
        H200_NODE.wire(0, 8)
