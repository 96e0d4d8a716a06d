"""What a planner answers: a technique, its settings, its schedule, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lt_core.base.schedule import Schedule
from lt_core.base.trace import JSON, Trace


@dataclass(frozen=True)
class Plan:
    """A way to train: what was chosen, what it should cost (`predicted`), whether it fits, and the reason in words."""

    technique: str
    settings: Mapping[str, JSON]
    schedule: Schedule
    predicted: Trace
    fits: bool
    why: str
