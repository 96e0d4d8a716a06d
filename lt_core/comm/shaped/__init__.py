"""A communicator whose wires are as slow as you say: real tensors, real messages, and time stretched to a wire's law.

| file | idea |
|---|---|
| comm | the verbs: begin them beneath, with a stamp that tells when they began |
| shape | what the wires are like: latency, bandwidth, jitter, stragglers |
| ports | when a message may start: a rank sends one at a time, and receives one |
| travelling | the Work: over when the law says so |

Source: the alpha-beta model; the ring's law for the backend's own collectives (Patarasuk and Yuan 2009).
"""

from lt_core.comm.shaped.comm import shaped

__all__ = ["shaped"]
