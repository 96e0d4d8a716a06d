"""lt_core: how large neural networks are trained, as running code.

A technique says what happens in which order (a `Schedule`, plain data); `simulate` prices it, `execute` runs it on
real ranks, both leave a `Trace`, and a view draws a `Trace`.
"""

__version__ = "0.1.0"
