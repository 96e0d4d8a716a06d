"""The bill: what each technique cost in four currencies, memory, compute, wire and sameness, on the learner's own runs.

    bill("ring all-reduce", lab="20", traffic=traffics, n_bytes=x.nbytes, badge=verify(results))   adds a line
    bill()                                                                                         shows all

Every value is taken from the Ledger, Trace, Traffic and badge of a run; what was not measured is called so.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from lt_core.base.action import Op
from lt_core.base.errors import UserError
from lt_core.base.ledger import Ledger
from lt_core.base.records import JSON
from lt_core.base.trace import Trace
from lt_core.base.traffic import Traffic
from lt_core.teaching.bill_table import Item, table, words
from lt_core.teaching.learner import Learner
from lt_core.teaching.shown import say
from lt_core.teaching.verify import Badge

COST = {Op.F: 1, Op.C: 1, Op.N: 1, Op.B: 2, Op.I: 1, Op.W: 1}  # a forward pass counts one, a backward two


def bill(
    technique: str = "",
    *,
    lab: str = "",
    ledger: Ledger | Sequence[Ledger] | None = None,
    trace: Trace | None = None,
    traffic: Traffic | Sequence[Traffic] | None = None,
    n_bytes: float | None = None,
    badge: Badge | None = None,
    of: str = "",
    steps: int = 1,
    note: str = "",
    learner: Learner | None = None,
) -> None:
    """Add what a run of `technique` cost to the learner's bill, and show the bill; without a technique only show it.

    ledger, traffic: one, or a list by rank.  n_bytes: how large what is sent in a step is, once and whole, such as the
    tensor that is summed: so lines of different runs compare, in n.  of: what the badge is of, if not of the training.
    steps: how many steps the traffic is of.  note: in your words. A technique billed before keeps what is not measured
    anew. Errors: fewer than one step, an n of nothing.
    """
    file = learner or Learner()
    if steps < 1:
        raise UserError("a bill needs steps", steps, "at least 1")
    if n_bytes is not None and n_bytes <= 0:
        raise UserError("a bill in parts of n needs an n", n_bytes, "bytes above 0")
    failed = ""
    if technique:
        new = {
            "lab": lab or None, "note": note or None, **_memory(ledger), **_compute(trace), **_wire(traffic, steps),
            "n_bytes": n_bytes, "sameness": f"{badge.sign} {badge.word}{f', of {of}' * bool(of)}" if badge else None,
        }  # fmt: skip
        failed = file.add("bill", name=technique, **{key: value for key, value in new.items() if value is not None})
    lines = items(file)
    say(
        "\n".join(filter(None, [words(lines), failed])),
        table(lines) + (f"<p>{html.escape(failed)}</p>" if failed else ""),
    )


def items(learner: Learner | None = None) -> list[Item]:
    """The bill's lines, in the order in which they were first added."""
    merged: dict[str, dict[str, JSON]] = {}
    for record in (learner or Learner()).records("bill"):
        merged.setdefault(str(record.get("name")), {}).update(record)
    return [Item(name, **{k: v for k, v in r.items() if k in Item._fields}) for name, r in merged.items()]  # type: ignore[arg-type]


def _memory(ledger: Ledger | Sequence[Ledger] | None) -> dict[str, JSON]:
    several = [ledger] if isinstance(ledger, Ledger) else list(ledger or ())
    return {"memory_bytes": max((one.peak_bytes for one in several), default=None)}


def _compute(trace: Trace | None) -> dict[str, JSON]:
    if trace is None or not any(s.stream == "compute" for s in trace.spans):
        return {}
    done = [s.action.op for s in trace.spans if s.action and s.action.op in COST]
    backward = sum(COST[op] for op in done if op in (Op.B, Op.I, Op.W))  # each two of it need one forward
    times = sum(COST[op] for op in done) / (1.5 * backward) if backward else None
    return {"flops_times": times, "idle": trace.idle_fraction()}


def _wire(traffic: Traffic | Sequence[Traffic] | None, steps: int) -> dict[str, JSON]:
    several = [traffic] if isinstance(traffic, Traffic) else list(traffic or ())
    if not several:
        return {}
    ends: Callable[[list[int]], list[JSON]] = lambda counts: [min(counts) / steps, max(counts) / steps]  # noqa: E731
    sent, messages = ends([t.bytes for t in several]), ends([t.messages for t in several])
    return {"sent_bytes": sent, "messages": messages, "by_law": any(t.by_law.bytes for t in several)}
