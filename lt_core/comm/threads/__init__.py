"""Ranks as threads of one process: hundreds of small tests a minute, and no wait that polls.

| file | idea |
|---|---|
| hub | one lock, a bell for each rank: waiting, deadlines, abort |
| links | messages: whoever comes second copies |
| rooms | collectives: whoever comes last runs them for all |
| rank_order | the collectives themselves, over a list of tensors |
| ranks | the communicator |
| run | start a function on all ranks, end with all of them |
"""

from lt_core.comm.threads.ranks import Threads
from lt_core.comm.threads.run import run

__all__ = ["Threads", "run"]
