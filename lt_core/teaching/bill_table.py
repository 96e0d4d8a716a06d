"""The bill's lines, and how they look: as text a paragraph a technique, as HTML a row a technique."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from lt_core.base.units import bytes_text

NOT_YET = "not measured yet"
CURRENCIES = ("memory", "compute", "wire", "sameness")
Pair = tuple[float, float]


class Item(NamedTuple):
    """One line. Wire: (least, most) of the ranks, a step; None where nothing was measured. n: what is sent, once."""

    technique: str
    lab: str = ""
    memory_bytes: int | None = None
    flops_times: float | None = None
    idle: float | None = None
    sent_bytes: Pair | None = None
    messages: Pair | None = None
    by_law: bool | None = None
    n_bytes: float | None = None
    sameness: str | None = None
    note: str = ""

    @property
    def memory(self) -> str:
        """Peak of the ranks' live bytes."""
        return NOT_YET if self.memory_bytes is None else bytes_text(self.memory_bytes)

    @property
    def compute(self) -> str:
        """Work against a plain step, and the share of time in which no device computed."""
        parts = [] if self.flops_times is None else [f"{self.flops_times:.2f} times a plain step's"]
        parts += [] if self.idle is None else [f"idle {100 * self.idle:.0f} %"]
        return ", ".join(parts) or NOT_YET

    @property
    def wire(self) -> str:
        """What a rank sends in a step, as a part of n where that is known."""
        if self.sent_bytes is None or self.messages is None:
            return NOT_YET
        law, sent = ", by law" if self.by_law else "", _count(self.sent_bytes, "byte")
        messages = f"in {_count(self.messages, 'message')} a rank and step"
        if self.n_bytes is None:
            return f"{sent} {messages}{law}"
        parts = _range(*(f"{end / self.n_bytes:.3g}" for end in self.sent_bytes))
        return f"{parts} n {messages}{law} ({sent}; n = {self.n_bytes:,.0f})"

    def cells(self) -> tuple[str, str, str, str]:
        """The four currencies in words."""
        return self.memory, self.compute, self.wire, self.sameness or NOT_YET


def words(lines: Sequence[Item]) -> str:
    """The bill as text: a paragraph a technique, a line a currency."""
    if not lines:
        return "Your bill is empty: each lab adds a line."
    return "\n".join(["Your bill, technique by technique:", *map(_paragraph, lines), *_key(lines)])


def table(lines: Sequence[Item]) -> str:
    """The bill as HTML: a row a technique, a column a currency."""
    if not lines:
        return f"<p>{words(lines)}</p>"
    heads = "".join(f'<th scope="col" style="text-align:left">{h}</th>' for h in ("technique", *CURRENCIES))
    rows = [f'<th scope="row" style="text-align:left">{_named(item)}</th>{_cells(item)}' for item in lines]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    key = "".join(f"<p>{line}</p>" for line in _key(lines))
    return f"<table><caption>Your bill</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{key}"


def _key(lines: Sequence[Item]) -> list[str]:
    """What n is, where a line has one: runs are of different sizes, and compare in it."""
    return ["n: the bytes of what is summed or sent, once; lines compare in n."] * any(x.n_bytes for x in lines)


def _cells(item: Item) -> str:
    return "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in item.cells())


def _named(item: Item) -> str:
    lab, note = f" (lab {item.lab})" * bool(item.lab), f"<br><small>{html.escape(item.note)}</small>" * bool(item.note)
    return html.escape(item.technique + lab) + note


def _paragraph(item: Item) -> str:
    head = f"{item.technique}{f' (lab {item.lab})' if item.lab else ''}{f': {item.note}' if item.note else ''}"
    return "\n".join([head, *(f"  {name}: {cell}" for name, cell in zip(CURRENCIES, item.cells(), strict=True))])


def _count(ends: Pair, noun: str) -> str:
    """`1 message`, `5 to 20 bytes`."""
    least, most = (f"{end:,.6g}" if end % 1 else f"{end:,.0f}" for end in ends)
    return f"{_range(least, most)} {noun}{'s' * ({least, most} != {'1'})}"


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
