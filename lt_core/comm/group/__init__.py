"""A warm group of ranks for a notebook: started once by the real torchrun, asked for one cell after another.

    kernel: Group --cells, HMAC--> ranks      ranks --answers, HMAC--> kernel      ranks --pipes--> what they print
                                              ranks --pages--> kernel: who is in which collective, without asking

| file | idea |
|---|---|
| group | the face: run a cell, restart, stop, status |
| cell | what is asked and answered, as plain data |
| start, standing | how a group comes up; how it mends itself between cells |
| tree, members | the processes of one start: keeper and torchrun; ranks, and what they say |
| turn, stuck, verdict | one cell under way: who answered, who failed first, who can never be met |
| report | where everybody is: in a collective, in a line of the cell, stopped, gone |
| ears, streams, fold | what ranks print: whole lines, bounded, one where all say the same |
| wire, pages | messages that are checked before they are read; pages that are read without asking |
| rank, seat, body, source, world, desk | a rank's own process: the cell's code, the communicators, signals |
| checked, said | what is asked before a call: whether every rank calls the same |
| interrupts, given | the user's interrupt; the kernel's objects on their way to the ranks |
| found, room | the groups of this user; whether there is memory for another |
"""

from lt_core.comm.group.cell import Cell, Interrupted, Line, Outcome, Status, ranks_text
from lt_core.comm.group.fold import settled
from lt_core.comm.group.found import find, stop_all
from lt_core.comm.group.group import Group

__all__ = [
    "Cell", "Group", "Interrupted", "Line", "Outcome", "Status", "find", "ranks_text", "settled", "stop_all",
]  # fmt: skip
