"""The nouns: plain data which every other floor reads and writes, and nothing else.

| file | idea | source |
|---|---|---|
| errors | what a user reads: what, got, expected, try | - |
| units | chunk bounds; bytes, seconds and rates as text | - |
| action | one vocabulary of verbs; one order to one rank | - |
| graph, schedule, staircase | what happens in which order; its checks; its drawing as text | - |
| costs | what prices are asked of | - |
| records, trace | what happened when | - |
| trace_file, trace_words | the same on disk, in Perfetto, in words | chrome trace events |
| waits | who waited for whom in a collective | - |
| traffic, ledger | bytes that left a rank; bytes that are alive | - |
| clock | one time for several processes | Cristian 1989 |
| cluster, profile | machines and models as plain data | alpha-beta model |
| work | something begun | - |
| policy, plan | who decides while it runs; what a planner answers | - |
| collector | Python's garbage collector, held while millions of records are made | - |
| torch_compat | what torch leaves untyped or private | - |
"""

from lt_core.base.action import Action, Op
from lt_core.base.errors import Aborted, Deadline, Mismatch, Misuse, RankError, ScheduleError, UserError
from lt_core.base.ledger import Ledger
from lt_core.base.plan import Plan
from lt_core.base.policy import Policy
from lt_core.base.profile import Layer, Profile
from lt_core.base.schedule import Schedule
from lt_core.base.trace import JSON, Level, Mark, Span, Trace
from lt_core.base.traffic import Tally, Traffic

__all__ = [
    "JSON", "Aborted", "Action", "Deadline", "Layer", "Ledger", "Level", "Mark", "Mismatch", "Misuse", "Op", "Plan",
    "Policy", "Profile", "RankError", "Schedule", "ScheduleError", "Span", "Tally", "Trace", "Traffic", "UserError",
]  # fmt: skip
