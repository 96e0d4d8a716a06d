"""The verbs: what can be done with a schedule, whichever technique made it.

`simulate` says how long it would take and `execute` does it on real ranks; both leave a trace, so that a law, a
simulation and a measurement stand on one axis. Where a policy decides on the way, `drive` runs it on a virtual clock
and a `Referee` on real ranks; both leave a schedule. `measure` finds what a model's layers cost, and `emulate` slows a
device down to a price list.

| file | idea | source |
|---|---|---|
| costs, priced | prices in round numbers; prices of a cluster and a profiled model | alpha-beta model |
| speeds | ranks of which one is slow | - |
| simulate | a heap of what can start next, on a virtual clock | discrete-event simulation |
| lane, board, streams, execute | a worker a stream, needs, exchanges, deadlines, the first error | - |
| record, drive, referee | who is asked next, and what happened | - |
| measure | a layer, run alone and timed | - |
| emulate | a device that works as long as it is told to | - |
"""
