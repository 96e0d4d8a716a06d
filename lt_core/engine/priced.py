"""What an action costs on a machine with a model: wires price messages, a measured profile prices computation.

sender [out]--wire of the pair--[in] receiver     latency + bytes / bandwidth, and the sum's time for an ADD
          \\__nic__/                               between nodes it also holds the NICs which the nodes' ranks share
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from lt_core.base.action import Action, Op
from lt_core.base.cluster import Cluster, Wire
from lt_core.base.errors import UserError
from lt_core.base.profile import Layer, Profile


def nics(sender: int, receiver: int) -> tuple[Hashable, ...]:
    """What a message between two nodes holds: the sending side of one's NIC, the receiving side of the other's."""
    return () if sender == receiver else (("nic out", sender), ("nic in", receiver))


def of_cluster(
    cluster: Cluster,
    chunk_bytes: int | Sequence[int] = 0,
    profile: Profile | None = None,
    host: Wire | None = None,
    add_s_per_byte: float = 0.0,
    update_s: float = 0.0,
) -> Priced:
    """The costs of running on `cluster`: messages by the wire of their pair, computation by the layers of `profile`.

    chunk_bytes: of every unit of a collective alike, or of each in turn.  profile: unit u of a pipeline is layer u.
    host: the wire between a device and its host (OUT, IN).  add_s_per_byte: seconds a byte that an ADD takes; 0 is the
    alpha-beta model.  update_s: seconds of a U. An action that none of these prices is a `UserError` when it is asked.
    """
    chunks = chunk_bytes if isinstance(chunk_bytes, int) else tuple(chunk_bytes)
    return Priced(cluster, chunks, profile, host, add_s_per_byte, update_s)


@dataclass(frozen=True)
class Priced:
    """The costs that `of_cluster` makes."""

    cluster: Cluster
    chunk_bytes: int | tuple[int, ...]
    profile: Profile | None
    host: Wire | None
    add_s_per_byte: float
    update_s: float

    def seconds(self, action: Action) -> float:
        """Seconds on the wire, on the device, or between device and host."""
        op = action.op
        if action.peer >= 0 and op.stream == "out":
            return self.cluster.wire(action.rank, action.peer).seconds(self.nbytes(action))
        if action.peer >= 0:
            return self.add_s_per_byte * self.nbytes(action) if op is Op.ADD else 0.0
        if op.stream in ("out", "in"):
            return self._ring_pass_s(self.nbytes(action))
        if op.stream in ("d2h", "h2d"):
            if self.host is None:
                raise UserError(f"{action} has no price", attempt="give `host`, the wire between device and host")
            return self.host.seconds(self.nbytes(action))
        return self.update_s if op is Op.U else self._compute_s(action)

    def _compute_s(self, action: Action) -> float:
        layer = self._layer(action, action.unit)
        if action.op in (Op.I, Op.W):  # the two halves of a backward
            return layer.backward_s / 2
        return layer.backward_s if action.op is Op.B else layer.forward_s

    def _ring_pass_s(self, nbytes: int) -> float:
        """A gather or a scatter among all ranks: size - 1 rounds round the ring, each as long as its slowest wire."""
        size = self.cluster.size
        wire = self.cluster.wire(0, size - 1)
        return (size - 1) * wire.seconds(nbytes // size)

    def nbytes(self, action: Action) -> int:
        """Bytes that a message, a gather, or a move to or from the host carries."""
        op = action.op
        if op.what == "F":
            return self._layer(action, action.unit).output_bytes
        if op.what == "B":
            return self._input_bytes(action)
        if action.peer >= 0:
            return self._chunk_bytes(action)
        if op in (Op.GATHER, Op.SCATTER):
            return self._layer(action, action.unit).parameter_bytes
        return self._layer(action, action.unit).kept_bytes if op in (Op.OUT, Op.IN) else 0

    def _input_bytes(self, action: Action) -> int:
        if action.unit:
            return self._layer(action, action.unit - 1).output_bytes
        return self.profile.input_bytes if self.profile else 0

    def _chunk_bytes(self, action: Action) -> int:
        if isinstance(self.chunk_bytes, int):
            return self.chunk_bytes * action.count
        end = action.unit + action.count
        if end > len(self.chunk_bytes):
            raise UserError(f"{action} has no price", f"{len(self.chunk_bytes)} chunk sizes", f"at least {end}")
        return sum(self.chunk_bytes[action.unit : end])

    def _layer(self, action: Action, unit: int) -> Layer:
        layers = self.profile.layers if self.profile else ()
        if unit >= len(layers):
            raise UserError(f"{action} has no price", f"a profile of {len(layers)} layers", f"at least {unit + 1}")
        return layers[unit]

    def kept_bytes(self, action: Action) -> int:
        """F and IN hold what the layer's backward needs, C its input; B, W, FREE and DROP give it back."""
        if self.profile is None or action.op.stream in ("out", "in", "d2h") or action.op in (Op.I, Op.N, Op.U):
            return 0
        layer = self._layer(action, action.unit)
        if action.op in (Op.C, Op.DROP):
            return layer.input_kept_bytes if action.op is Op.C else -layer.input_kept_bytes
        return layer.kept_bytes if action.op in (Op.F, Op.IN) else -layer.kept_bytes

    def extra_bytes(self, action: Action) -> int:
        """What the layer needs only while it runs."""
        if self.profile is None or action.op.stream != "compute" or action.op is Op.U:
            return 0
        layer = self._layer(action, action.unit)
        return layer.extra_backward_bytes if action.op in (Op.B, Op.I, Op.W) else layer.extra_forward_bytes

    def shared(self, action: Action) -> tuple[Hashable, ...]:
        """The NICs of both nodes, of a message between nodes."""
        if action.peer < 0:
            return ()
        return nics(self.cluster.node(action.rank), self.cluster.node(action.peer))
