"""Where the ranks of one host meet: a file in the launch's folder, so that no port is opened and none can be taken.

torchrun loads `create` from the entry points `torchrun.handlers`, in every run of this environment: nothing heavy here.

    torchrun --rdzv-backend ltfile --rdzv-endpoint FOLDER ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters

NAME = "ltfile"


def create() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """What torchrun asks of a plug-in: the function that makes the handler."""
    return _handler


def installed() -> bool:
    """Whether torchrun will find it: only an installed package has entry points."""
    from importlib.metadata import entry_points

    return NAME in entry_points(group="torchrun.handlers").names


def _handler(params: RendezvousParameters) -> RendezvousHandler:
    from torch._C._distributed_c10d import FileStore, PrefixStore
    from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousInfo, RendezvousStoreInfo

    class FileRendezvous(RendezvousHandler):
        """One agent, alone in its file: it is always complete, never closed, and nobody waits to come in."""

        use_agent_store = False

        def get_backend(self) -> str:
            return NAME

        def get_run_id(self) -> str:
            return params.run_id

        def next_rendezvous(self) -> RendezvousInfo:
            store = PrefixStore(params.run_id, FileStore(f"{params.endpoint}/agent_store", -1))
            nobody_listens = RendezvousStoreInfo("127.0.0.1", 1)
            return RendezvousInfo(store, 0, 1, nobody_listens)

        def is_closed(self) -> bool:
            return False

        def set_closed(self) -> None:
            """A file needs no closing."""

        def num_nodes_waiting(self) -> int:
            return 0

        def shutdown(self) -> bool:
            return True

    return FileRendezvous()
