"""B. Parallelism, data: every rank holds the whole model and a part of the batch; what is shared is what they learned.

Synchronous ways replicate the model and take the mean of all gradients before each step, so that many ranks train as
one process on the whole batch would. Asynchronous ones stop waiting, and then say how old a gradient may be.

    from lt_core.data_parallel.replicate import overlapped

    replica = overlapped.replicate(model, comm)      # your model, as it is
    loss.backward(); replica.sync(); optimizer.step()

Whatever reads gradients, clipping among it, comes after `sync()`; a step without one is each rank's own, and nothing
says so. Dropout draws from torch's generator: `torch.manual_seed(seed + comm.rank)` gives each rank masks of its own,
the same seed on all ranks the same masks for other samples; ranks that are threads share one generator.

| file | idea | paper |
|---|---|---|
| replicate | the mean of all gradients before each step: one by one, in buckets, beside the backward | Li 2020 |
| local_sgd | some steps alone, then the mean of the weights | Stich 2018, Lin and others 2018 |
| enact | what a policy decides, done: on real ranks, or once more in one process | - |
| alike | two ranks that meet for the first time train the same model | - |
| finite | a gradient that is inf or nan ends the run before any weights have it | - |
| staleness | who used which version of the weights; what became of each gradient | - |
| parameter_server | servers keep the weights: synchronous, asynchronous, in shards | Dean 2012, Li 2014 |
| stale_synchronous | nobody is more than so many clocks ahead | Ho and others 2013 |
| downpour | read and push now and then, Adagrad at the servers, a warm start | Dean and others 2012 |
| partial | the fast go on without the slow: backup workers, eager, P-Reduce | Chen 2016, Li 2020, Miao 2021 |
| hogwild | one set of weights in shared memory, and no lock | Niu and others 2011 |
"""
