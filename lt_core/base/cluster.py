"""Machines as plain data: a device, a wire, and how many of each; presets that this project uses throughout.

node 0                      node 1          inside a node every pair is joined by `inner`;
[d0]=[d1]=[d2]=[d3]  nic----nic  [d4]=...   between nodes all ranks of a node share its NIC, `outer`
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text, parse_rate, parse_seconds, rate_text, seconds_text


@dataclass(frozen=True)
class Wire:
    """A link: seconds until the first byte arrives, and bytes a second from then on. Source: the alpha-beta model.

    Errors: time that runs backwards, a rate at which nothing arrives.
    """

    name: str
    latency_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        if not (0 <= self.latency_s < float("inf") and self.bytes_per_s > 0):
            got = f"{self.latency_s} s, {self.bytes_per_s} bytes/s"
            raise UserError(f"{self.name} is no wire", got, "a latency of 0 or more, a rate above 0")

    def seconds(self, nbytes: int) -> float:
        """How long one message of `nbytes` takes."""
        return self.latency_s + nbytes / self.bytes_per_s

    def __str__(self) -> str:
        return f"{self.name} ({rate_text(self.bytes_per_s)}, {seconds_text(self.latency_s)})"

    @staticmethod
    def parse(text: str, name: str = "wire") -> Wire:
        """The wire that `1 Gbit/s 0.1 ms` describes."""
        words = text.split()
        if len(words) != 4:
            raise UserError(f"{text!r} is no wire", expected="bandwidth and latency", attempt="1 Gbit/s 0.1 ms")
        return Wire(name, parse_seconds(" ".join(words[2:])), parse_rate(" ".join(words[:2])))


@dataclass(frozen=True)
class Device:
    """One accelerator: its memory, and the floating-point operations and memory bytes it can do in a second."""

    name: str
    memory_bytes: int
    flops_per_s: float = 0.0
    memory_bytes_per_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} ({bytes_text(self.memory_bytes)})"


@dataclass(frozen=True)
class Cluster:
    """`nodes` machines of `per_node` devices; ranks are numbered node by node."""

    name: str
    device: Device
    per_node: int
    inner: Wire
    nodes: int = 1
    outer: Wire | None = None

    def __post_init__(self) -> None:
        if self.per_node < 1 or self.nodes < 1:
            raise UserError(f"{self.name} has no devices", f"{self.nodes} x {self.per_node}", "at least 1 x 1")
        if self.nodes > 1 and self.outer is None:
            raise UserError(f"{self.name} has {self.nodes} nodes and no wire between them", attempt="give `outer`")

    @property
    def size(self) -> int:
        """How many devices there are."""
        return self.nodes * self.per_node

    def node(self, rank: int) -> int:
        """The node on which a rank sits. Errors: a rank that the cluster does not have."""
        if not 0 <= rank < self.size:
            raise UserError(f"{self.name} has no rank {rank}", expected=f"0 to {self.size - 1}")
        return rank // self.per_node

    def wire(self, sender: int, receiver: int) -> Wire:
        """The link between two ranks."""
        if self.node(sender) == self.node(receiver):
            return self.inner
        assert self.outer is not None  # checked when it was made
        return self.outer

    def times(self, nodes: int) -> Cluster:
        """The same machine, `nodes` of them."""
        return replace(self, nodes=nodes, name=f"{nodes} x {self.name}" if nodes > 1 else self.name)


# The course's wires and devices; every figure made with them says so.
RACK = Wire("rack", 10e-6, 10e9 / 8)
OFFICE = Wire("office", 1e-4, 1e9 / 8)
KITCHEN = Wire("kitchen", 1e-3, 100e6 / 8)
SHOEBOX = Device("shoebox", 24 * 2**20)
MATCHBOX = Device("matchbox", 6 * 2**20)

# Vendors' figures: memory, dense bf16 FLOP/s, memory bandwidth; NVLink a direction; 400 and 200 Gbit/s InfiniBand.
H200 = Device("H200", 141 * 10**9, 989e12, 4.8e12)
A100 = Device("A100", 80 * 10**9, 312e12, 2.039e12)
RTX4090 = Device("RTX 4090", 24 * 10**9, 165e12, 1.008e12)
NVLINK4 = Wire("NVLink 4", 2e-6, 450e9)
NVLINK3 = Wire("NVLink 3", 2e-6, 300e9)
PCIE4 = Wire("PCIe 4.0 x16", 5e-6, 25e9)
INFINIBAND_NDR = Wire("InfiniBand NDR", 5e-6, 400e9 / 8)
INFINIBAND_HDR = Wire("InfiniBand HDR", 5e-6, 200e9 / 8)
ETHERNET_10G = Wire("10 Gb/s Ethernet", 30e-6, 10e9 / 8)

H200_NODE = Cluster("8 x H200", H200, 8, NVLINK4, outer=INFINIBAND_NDR)
A100_NODE = Cluster("8 x A100", A100, 8, NVLINK3, outer=INFINIBAND_HDR)
PCIE_NODE = Cluster("4 GPUs on PCIe", RTX4090, 4, PCIE4, outer=ETHERNET_10G)
