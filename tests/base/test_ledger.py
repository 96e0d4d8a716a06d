"""A ledger keeps the worst moment, and who was to blame then."""

import pytest

from lt_core.base.errors import UserError
from lt_core.base.ledger import Ledger


def test_the_worst_moment_is_kept():
    ledger = Ledger()
    ledger.hold("parameters", 10)
    ledger.hold("activations", 5)
    ledger.free("activations", 3)
    ledger.hold("gradients", 2)
    assert (ledger.live_bytes, ledger.peak_bytes) == (14, 15)
    assert ledger.at_peak == {"parameters": 10, "activations": 5}
    assert ledger.held == {"parameters": 10, "activations": 2, "gradients": 2}


def test_an_equal_moment_later_does_not_replace_it():
    ledger = Ledger()
    ledger.hold("a", 4)
    ledger.free("a", 4)
    ledger.hold("b", 4)
    assert ledger.at_peak == {"a": 4}


def test_what_it_refuses():
    ledger = Ledger()
    ledger.hold("a", 4)
    with pytest.raises(UserError, match="a cannot hold -1 bytes; expected 0 or more; try: call free"):
        ledger.hold("a", -1)
    with pytest.raises(UserError, match="a cannot free 5 bytes; expected 0 to 4, which it holds"):
        ledger.free("a", 5)
    with pytest.raises(UserError, match="b cannot free 1 bytes; expected 0 to 0, which it holds"):
        ledger.free("b", 1)
    assert (ledger.live_bytes, ledger.peak_bytes) == (4, 4)
