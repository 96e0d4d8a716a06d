"""Synchronous data parallelism: one model on every rank, the mean of all gradients before each step.

    replica = overlapped.replicate(model, comm)        your model is neither wrapped nor rewritten
    with replica.no_sync(): loss.backward()            a micro-batch of this rank's own
    loss.backward(); replica.sync(); optimizer.step()  the last one, and all ranks' mean in every .grad

Train with `overlapped`. `naive` and `bucketed` have the same faces: to read first, and to compare with.

| file | idea | paper |
|---|---|---|
| naive | one message a parameter, after the backward: the oracle | - |
| bucketed | gradients travel in buckets, one message each | Li and others 2020 |
| overlapped | a bucket travels while the backward goes on | Li and others 2020 |
| replica | what the three share: a start alike, windows without messages, the end of a step | - |
| start | parameters and buffers of rank 0 for everyone | - |
| roll | who had which gradient, told in one short message | - |
| buckets | which parameters travel together | Li and others 2020 |
| flat | a bucket in one piece of memory, whose views are the gradients | Li and others 2020 |
| under_way | buckets leave in one order, and wait until all have landed | - |
| carriers | what takes a bucket to its mean while the backward goes on | - |
| sparse | the mean of gradients of which most rows are zero | - |
| uneven | ranks with fewer batches stay until the last one is through | - |
| record | what a replica writes into a trace | - |
| step | a whole step as a schedule, and its law in seconds | - |
"""

from lt_core.data_parallel.replicate import bucketed, buckets, naive, overlapped, step, uneven

__all__ = ["bucketed", "buckets", "naive", "overlapped", "step", "uneven"]
