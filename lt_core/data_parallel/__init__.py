"""B. Parallelism, data: every rank holds the whole model and a part of the batch; what is shared is what they learned.

Synchronous ways replicate the model and take the mean of all gradients before each step, so that many ranks train as
one process on the whole batch would. Asynchronous ones stop waiting, and then say how old a gradient may be.

    replica = overlapped.replicate(model, comm)      # your model, as it is
    loss.backward(); replica.sync(); optimizer.step()

| file | idea | paper |
|---|---|---|
| replicate | the mean of all gradients before each step: one by one, in buckets, while the backward still runs | Li and others 2020 |
| local_sgd | some steps alone, then the mean of the weights | Stich 2018, Lin and others 2018 |
"""
