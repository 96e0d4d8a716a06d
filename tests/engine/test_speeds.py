"""Ranks of which one is slow: computing takes what its rank takes, everything else what the messages' prices say."""

from lt_core.base.action import Action, Op
from lt_core.engine.costs import Unit
from lt_core.engine.speeds import Speeds


def test_seconds():
    costs = Speeds([1, 10], Unit(alpha=0.5, by={"U": 0.25}))
    given = [Action(Op.F, 0, 0, 0), Action(Op.B, 0, 0, 1), Action(Op.F, 0, 0, 2), Action(Op.U, 0, 0, 1)]
    assert [costs.seconds(a) for a in given] == [1, 10, 0, 0.25]
    assert costs.seconds(Action(Op.SEND, 0, 0, 1, 0)) == 0.5 and costs.seconds(Action(Op.COPY, 0, 0, 0, 1)) == 0
    assert (costs.kept_bytes(given[0]), costs.extra_bytes(given[0]), costs.shared(given[0])) == (0, 0, ())


def test_a_node_s_nic_is_the_messages_affair():
    costs = Speeds([1] * 4, Unit(alpha=1.0, node=2))
    assert costs.shared(Action(Op.SEND, 0, 0, 0, 3)) and not costs.shared(Action(Op.SEND, 0, 0, 0, 1))
