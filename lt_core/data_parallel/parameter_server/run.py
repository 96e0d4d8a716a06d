"""A parameter server on real ranks, and the same run once more in one process.

policy = ParameterServer(4, Asynchronous(), updates=60)
referee = Referee(policy, never)
ended = launch(run, policy.size, Job(make_model, loss, optimizer), Kind.of(policy), served(referee))
weights(replayed(referee.schedule(), job, Kind.of(policy)))        bit-equal to weights(ended)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lt_core.base.action import Action
from lt_core.base.costs import Costs
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.comm.comm import Comm
from lt_core.data_parallel.enact import Asked, enact, replay
from lt_core.data_parallel.parameter_server.job import Job, Kind
from lt_core.data_parallel.parameter_server.sides import Shard


class Ended(NamedTuple):
    """What one rank brings home: a server its part of the weights (n,), and every rank its trace."""

    part: Tensor | None
    trace: Trace


def never(policy: object) -> bool:
    """For a `Referee` whose policy ends by itself, once it has made its `updates`."""
    return False


def run(comm: Comm, job: Job, kind: Kind, asked: Asked, costs: Costs | None = None, scale: float = 0.01) -> Ended:
    """Be worker or server, whichever this rank is, until the referee says that it is over.

    costs: emulate devices of this speed, an emulated second lasting `scale` real ones. Errors: other ranks than the
    policy has; those of `enact`.
    """
    if comm.size != kind.workers + kind.servers:
        expected = f"{kind.workers} workers and {kind.servers} servers"
        raise UserError(
            "each rank is a worker or a server", f"{comm.size} ranks", expected, "launch(run, policy.size, ..)"
        )
    side = job.side(kind, comm.rank, comm.device)
    trace = enact("parameter server", asked, side, comm, costs, scale)
    return Ended(side.weights.cpu() if isinstance(side, Shard) else None, trace)


def replayed(
    schedule: Schedule, job: Job, kind: Kind, watch: Callable[[Action, Sequence[Shard]], None] | None = None
) -> list[Ended]:
    """The recorded order in one process. watch: called after each action, with the servers as they are then."""
    sides = [job.side(kind, rank) for rank in range(schedule.size)]
    shards = [side for side in sides if isinstance(side, Shard)]
    replay(schedule, sides, (lambda a: watch(a, shards)) if watch else (lambda a: None))
    return [Ended(s.weights if isinstance(s, Shard) else None, Trace(schedule.name)) for s in sides]


def weights(ended: Sequence[Ended]) -> Tensor:
    """The servers' parts as one vector, in the order of `model.parameters()`: (elements,)."""
    return torch.cat([one.part for one in ended if one.part is not None])
