"""Ranks of one host that share memory: what NCCL does between the GPUs of a host, with plain torch between its cores.

No message is passed to a kernel: a rank writes where the others read, and they wait for a number that it writes last.
Every sum runs in the order of ranks, whatever the verb and the cut.

| file | idea | source |
|---|---|---|
| over, ranks, prepared | the communicator: check, count, and do one collective after the other | - |
| collectives | which way: in place, or over the stages | - |
| in_place | each rank sums its chunk of all tensors where they lie, and writes it to all | Rabenseifner 2004 |
| copied | part by part over the stages, one meeting a part | - |
| links, messages | a ring of pieces for each direction of each pair; all moved by whoever waits | Lamport 1977 |
| lane | what was begun, in its order | - |
| phases, waits, ending | meeting by numbers: look, give way, sleep; deadlines, deaths, a fence | MPI |
| room, slots, growth | what lies where; larger stages for large tensors | - |
| segment, names | one file for all, which has a name only for a moment; sweeping what the dead left | shm_open(3) |
"""

from lt_core.comm.shared_memory.over import over

__all__ = ["over"]
