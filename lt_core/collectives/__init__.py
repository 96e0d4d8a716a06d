"""Collectives: ranks that each hold a tensor, and one result of all of them.

Every algorithm is a list of rounds of messages, hence a schedule, and one machine runs them all: what differs from file
to file is who talks to whom, and the law that follows from it. An all-reduce is a file with the faces of `ring`:
`schedule(size)`, `law_rounds`, `law_messages`, `law_bytes`, `law_seconds`. A new one (a tree, say) is a file beside it
and a line in `tests/test_laws.py`, whose suite then holds it to formula, simulation and the counts of real runs.

    all_reduce(comm, x, ring.schedule(comm.size))

| file | idea | paper |
|---|---|---|
| rounds | rounds of messages become a schedule, by one rule | - |
| checks | what every collective refuses | - |
| buffers | a dense copy, an alias, a buffer that is used again | - |
| exchange | a round of one rank as tensors | - |
| machine | the one machine that runs them all | - |
| basic | broadcast, reduce, scatter, gather: one rank and all others | - |
| naive | all to rank 0, the sum to all: the oracle | - |
| ring | every rank talks to its neighbour only; no all-reduce sends fewer bytes | Patarasuk and Yuan 2009 |
| watch | what a run writes down for those who step through it | - |
| native | the backend's own behind the same face | - |
| agreement | whether all ranks brought the same thing | - |
| reducer | gradients to their mean, a bucket in one message | - |
"""

from lt_core.collectives import basic, naive, native, ring
from lt_core.collectives.buffers import Scratch
from lt_core.collectives.machine import Prepared, all_reduce, run
from lt_core.collectives.reducer import Mean, Reduced, Reducer
from lt_core.collectives.rounds import Message, of_rounds
from lt_core.collectives.watch import chunk_table

__all__ = [
    "Mean",
    "Message",
    "Prepared",
    "Reduced",
    "Reducer",
    "Scratch",
    "all_reduce",
    "basic",
    "chunk_table",
    "naive",
    "native",
    "of_rounds",
    "ring",
    "run",
]
