"""What a partial round costs: it lasts as long as the slowest of the fastest.

round     the quorum-th smallest of the ranks' seconds, where a synchronous one lasts the largest
bytes     P-Reduce, group of P, n bytes: the first rank sends (P - 1) n, each other n
"""

from __future__ import annotations

from collections.abc import Sequence

from lt_core.data_parallel.partial.rules import check_quorum


def law_round_s(seconds: Sequence[float], quorum: int) -> float:
    """Seconds of a round which begins with all ranks at once: the `quorum`-th smallest."""
    check_quorum(quorum, len(seconds))
    return sorted(seconds)[quorum - 1]


def law_bytes(nbytes: int, quorum: int, first: bool) -> int:
    """How many bytes a rank of a P-Reduce group sends: the first of the group, or another."""
    return nbytes * (quorum - 1) if first else nbytes


def law_messages(quorum: int, first: bool) -> int:
    """How many messages that is."""
    return quorum - 1 if first else 1
