"""Partial reduction: the fast ranks go on without the slow one, in three ways that differ in what becomes of the late.

| file | idea | paper |
|---|---|---|
| rules | backup workers drop late gradients; eager ones apply them a round later | Chen 2016, Li 2020 |
| p_reduce | whoever is ready takes the mean of models | Miao and others 2021 |
| averaging | the same as tensors, on real ranks and replayed | Miao and others 2021 |
| laws | the round's order statistic; bytes of a group | - |
"""

from lt_core.data_parallel.partial.laws import law_bytes, law_messages, law_round_s
from lt_core.data_parallel.partial.p_reduce import PartialReduce
from lt_core.data_parallel.partial.rules import BackupWorkers, Eager, Majority

__all__ = ["BackupWorkers", "Eager", "Majority", "PartialReduce", "law_bytes", "law_messages", "law_round_s"]
