"""C. Optimizers across devices: gradients that travel compressed, where the wire is slower than the compressor.

Every compressor is a Reducer: gradients of a bucket in, all ranks' mean out, in few messages, and `sent` says what the
own gradient became on the wire. What was lost can be remembered and added to the next gradient; `ErrorFeedback` wraps
any reducer and does so. Its counted bytes are those of its law, to the byte.

    reducer = ErrorFeedback(PowerSGD(rank=2))        # then replicate(model, comm, reducer)

| file | idea | paper |
|---|---|---|
| bucket | a bucket as one flat tensor; what stays by name between steps | - |
| ratio | which part of a bucket is sent, and by which step | Lin and others 2018 |
| packing | bits and trits in bytes | - |
| gather | everyone's bytes to everyone | - |
| draws | random numbers of a rank's own | - |
| sparse | the k largest elements, as (index, value) | Aji and Heafield 2017 |
| half | 16 bits an element, summed on the way | - |
| one_bit | the sign, and a mean for each sign and column | Seide and others 2014 |
| terngrad | -1, 0 or 1 times the largest, drawn without bias | Wen and others 2017 |
| elias | whole numbers in as many bits as they need | Elias 1975 |
| qsgd | whole steps of a norm, drawn without bias, coded in bits | Alistarh and others 2017 |
| top_k | the largest k, or those above a threshold | Aji and Heafield 2017 |
| coarse | the chunks that are largest over all ranks, summed densely | Sun and others 2019 |
| error_feedback | what was lost is added to the next gradient | Seide 2014; Alistarh and others 2018 |
| dgc | momentum that waits with what was not sent; clipping, warm-up | Lin and others 2018 |
| low_rank | which tensors are matrices, and how thin factors are kept | - |
| power_sgd | a matrix as two thin factors, linear in the gradient | Vogels and others 2019 |
| grad_zip | one factor a step, the other from the step before | Cho and others 2019 |

What may be wrong in a gradient. Where it is inf or nan on one rank only, the mean is so on every rank, as it is without
a compressor, and what waits of that bucket stays as it was, on every rank: the step can be skipped everywhere. What its
other buckets had sent comes back to what waits by `undo`:

    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    if not all(x.isfinite().all() for x in grads.values()):      # alike on all ranks
        reducer.undo(grads)                                      # instead of optimizer.step()
"""

from lt_core.compression.coarse import Coarse
from lt_core.compression.dgc import MomentumCorrection, deep_gradient_compression, warm_up
from lt_core.compression.elias import Elias
from lt_core.compression.error_feedback import ErrorFeedback
from lt_core.compression.grad_zip import GradZip
from lt_core.compression.half import Half
from lt_core.compression.one_bit import OneBit
from lt_core.compression.power_sgd import PowerSGD
from lt_core.compression.qsgd import QSGD, Packed
from lt_core.compression.terngrad import TernGrad
from lt_core.compression.top_k import Threshold, TopK

__all__ = [
    "QSGD",
    "Coarse",
    "Elias",
    "ErrorFeedback",
    "GradZip",
    "Half",
    "MomentumCorrection",
    "OneBit",
    "Packed",
    "PowerSGD",
    "TernGrad",
    "Threshold",
    "TopK",
    "deep_gradient_compression",
    "warm_up",
]
