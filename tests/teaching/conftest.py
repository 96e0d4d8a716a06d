"""A learner whose file nobody else has."""

import pytest

from lt_core.teaching import Learner


@pytest.fixture
def learner(tmp_path):
    """A learner who has said nothing yet."""
    return Learner(tmp_path / "mine.jsonl")
