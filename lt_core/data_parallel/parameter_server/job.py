"""What is trained, and what a rank has to know of who decides: plain data, which travels to other processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lt_core.data_parallel.parameter_server.layout import Layout
from lt_core.data_parallel.parameter_server.optimizers import Steps
from lt_core.data_parallel.parameter_server.policy import ParameterServer
from lt_core.data_parallel.parameter_server.sides import Loss, Shard, Worker


@dataclass(frozen=True)
class Job:
    """What is trained, the same on every rank: `Job(make_model, loss, partial(SGD, lr=0.1))`.

    local_rate: a worker steps by itself between two reads, as Downpour does.  aware: old gradients count less.
    """

    model: Callable[[], nn.Module]
    loss: Loss
    optimizer: Callable[[list[Tensor]], Steps]
    local_rate: float = 0.0
    aware: bool = False

    def side(self, policy: Kind, rank: int, device: torch.device | str = "cpu") -> Worker | Shard:
        """The worker or the server that `rank` is."""
        model = self.model().to(device)
        layout = Layout(model, policy.servers)
        if rank < policy.workers:
            return Worker(model, layout, self.loss, self.local_rate)
        return Shard(layout, rank - policy.workers, self.optimizer, policy.divisor, self.aware)


@dataclass(frozen=True)
class Kind:
    """What a rank has to know of the policy: `Kind.of(policy)`."""

    workers: int
    servers: int
    divisor: int | None

    @staticmethod
    def of(policy: ParameterServer) -> Kind:
        """Its plain facts, which travel to other processes while the policy stays where it is."""
        return Kind(policy.workers, policy.servers, policy.rule.divisor)
