"""Servers keep the weights, workers read them and push gradients: nobody talks to everybody.

A rule says when a server updates; the policy, the messages and the optimizer are the same for all rules. Stale
synchrony, Downpour, and the partial ones are rules too, each in its own file beside this folder.

| file | idea | paper |
|---|---|---|
| book | what a server knows of its workers; what a rule decides | Li and others 2014 |
| rules | synchronous, asynchronous | Dean and others 2012 |
| policy | who reads, computes and pushes next, from one server or several | Li and others 2014 |
| layout | all parameters as one vector, in parts | - |
| sides | worker and server as tensors; old gradients that count less | Zhang and others 2015 |
| optimizers | SGD and Adagrad for parts of parameters | Duchi and others 2011 |
| job | what is trained | - |
| run | real ranks, and the same run replayed | - |
| laws | bytes, seconds, staleness, the stable step, momentum | Yang 2021, Mitliagkas 2016 |
"""

from lt_core.data_parallel.parameter_server.job import Job, Kind
from lt_core.data_parallel.parameter_server.laws import (
    law_bytes,
    law_messages,
    law_momentum,
    law_seconds,
    law_stable_step,
    law_staleness,
)
from lt_core.data_parallel.parameter_server.layout import Layout
from lt_core.data_parallel.parameter_server.optimizers import SGD, Adagrad
from lt_core.data_parallel.parameter_server.policy import ParameterServer
from lt_core.data_parallel.parameter_server.rules import Asynchronous, Synchronous
from lt_core.data_parallel.parameter_server.run import Ended, never, replayed, run, weights

__all__ = [
    "SGD", "Adagrad", "Asynchronous", "Ended", "Job", "Kind", "Layout", "ParameterServer", "Synchronous", "law_bytes",
    "law_messages", "law_momentum", "law_seconds", "law_stable_step", "law_staleness", "never", "replayed", "run",
    "weights",
]  # fmt: skip
