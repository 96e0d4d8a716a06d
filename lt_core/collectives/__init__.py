"""Collectives: ranks that each hold a tensor, and one result of all of them.

Every algorithm is a list of rounds of messages, hence a schedule, and one machine runs them all: what differs from file
to file is who talks to whom, and the law that follows from it. An all-reduce is a file with the faces of `ring`:
`schedule(size)`, `law_rounds`, `law_messages`, `law_bytes`, `law_seconds`. A new one is a file beside it and a line in
`tests/test_laws.py`, whose suite then holds it to formula, simulation and the counts of real runs.

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
| tree | sums climb a binomial tree and come down again: few rounds | Thakur et al. 2005 |
| doubling | all swap all they have, with ever farther ranks: the fewest rounds | Thakur et al. 2005 |
| halving | swaps of halves: the ring's bytes in a tree's rounds | Rabenseifner 2004 |
| double_tree | two trees, half of the tensor each, pieces in a row | Sanders et al. 2009 |
| compose | rounds made of rounds: among other ranks, side by side, there and back | - |
| torus | rings along the rows and down the columns | Mikami et al. (Sony) 2018 |
| hierarchical | stars inside groups, a ring of their masters; by size, or a ring | Jia et al. (Tencent) 2018 |
| watch | what a run writes down for those who step through it | - |
| native | the backend's own behind the same face | - |
| agreement | whether all ranks brought the same thing | - |
| reducer | gradients to their mean, a bucket in one message | - |
| fusion | small gradients wait in a pool and travel together | Jia et al. 2018, Sun et al. 2019 |
| choose | the fastest by law for a machine, and where the answer changes | - |
"""

from lt_core.collectives import basic, double_tree, doubling, halving, hierarchical, naive, native, ring, torus, tree
from lt_core.collectives.buffers import Scratch
from lt_core.collectives.choose import ALGORITHMS, choices, choose, crossovers, simulated
from lt_core.collectives.fusion import Pool
from lt_core.collectives.machine import Prepared, all_reduce, run
from lt_core.collectives.reducer import Mean, Reduced, Reducer
from lt_core.collectives.rounds import Message, of_rounds
from lt_core.collectives.watch import chunk_table

__all__ = [
    "ALGORITHMS",
    "Mean",
    "Message",
    "Pool",
    "Prepared",
    "Reduced",
    "Reducer",
    "Scratch",
    "all_reduce",
    "basic",
    "choices",
    "choose",
    "chunk_table",
    "crossovers",
    "double_tree",
    "doubling",
    "halving",
    "hierarchical",
    "naive",
    "native",
    "of_rounds",
    "ring",
    "run",
    "simulated",
    "torus",
    "tree",
]
