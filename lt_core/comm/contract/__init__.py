"""A communicator around a communicator that holds what NCCL asks for on every backend, so that tests find it on a CPU.

| file | idea |
|---|---|
| comm | the verbs: say what is called, see that all say the same, then call it |
| pages | a page of shared memory for each rank: what it calls, sends, wants and waits for |
| share | how the ranks get them |
| agree | whether two pages say the same, and who takes what is sent |
| waits | waiting for others' pages: deadlines, circles of waits, and faults told to all |
| started | work that was begun, and the search for what nobody waited for |
| buffers | what started work owns: poisoned outputs, unchanged inputs |

Source: NCCL's user guide (operation order, group calls) and torch.distributed's notes on asynchronous work.
"""

from lt_core.comm.contract.comm import Contract, contract, under_contract

__all__ = ["Contract", "contract", "under_contract"]
