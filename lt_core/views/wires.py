"""Who sends how much to whom: a row a sender, a column a receiver, sums at the right and below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lt_core.base.trace import Trace
from lt_core.base.traffic import Tally, Traffic
from lt_core.base.units import bytes_text
from lt_core.views.actions import action_of
from lt_core.views.show import Figure
from lt_core.views.style import BOTTOM, FORWARD, GRID, INK, LANE, TITLE, TOP, sized, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

NARROWEST = 470  # pixels: all cells of a row in a figure 568 wide
FONTS = ((13, 7.4), (11, 6.3))  # pixels: sizes of a number that can be read, and how wide a digit is then
STEPS = ((1, "bytes"), (10**3, "kB"), (10**6, "MB"), (10**9, "GB"), (10**12, "TB"))


class Text(NamedTuple):
    """How numbers are written in cells: divided by `step`, in `unit`, `font` pixels high; 0 where none fits."""

    step: int
    unit: str
    font: int


def wires(source: Trace | Sequence[Traffic], *, title: str = "", under: str = "rows send, columns receive") -> Figure:
    """The matrix of bytes between ranks, from a Trace's sends or from what each rank's Traffic counted (by rank).

    Where no bytes are known, as in a simulation that counts units, it is the matrix of messages.
    """
    tallies, note = _of_trace(source) if isinstance(source, Trace) else _of_traffic(source)
    size = max([1, len(tallies), *(peer + 1 for t in tallies for peer in t.messages_to)])
    tallies = [*tallies, *(Tally() for _ in range(size - len(tallies)))]
    noun = "bytes" if any(t.bytes for t in tallies) or not any(t.messages for t in tallies) else "messages"
    rows = [[(t.bytes_to if noun == "bytes" else t.messages_to)[peer] for peer in range(size)] for t in tallies]
    exact, brief = _finding(rows, lambda n: f"{n:,} {noun}"), _finding(rows, bytes_text)
    fig = sized(_matrix(rows, noun, tallies), TOP + BOTTOM + LANE * (size + 1))
    titled(fig, title or (exact if len(exact) <= TITLE else brief), under)
    return Figure(fig, " ".join(filter(None, [f"{title}." if title else "", f"{exact}.", _links(tallies), note])))


def _of_trace(trace: Trace) -> tuple[list[Tally], str]:
    tallies = [Tally() for _ in range(max(trace.ranks(), default=-1) + 1)]
    sends = [(s, action_of(s)) for s in trace.spans if s.stream == "out"]
    known = any(s.nbytes for s, _ in sends)  # then a message of no bytes is one that was not sent
    unnamed = 0
    for s, a in sends:
        if a is None or a.peer < 0:
            unnamed += s.nbytes
        elif s.nbytes or not known:
            tallies[s.rank].add(a.peer, s.nbytes)
    return tallies, f"{unnamed:,} bytes more left in collectives, which name no receiver." if unnamed else ""


def _of_traffic(traffic: Sequence[Traffic]) -> tuple[list[Tally], str]:
    joined = [(Traffic(t.counted) + Traffic(t.by_law)).counted for t in traffic]
    law_bytes = sum(t.by_law.bytes for t in traffic)
    note = f"{law_bytes:,} of these bytes were not counted but follow from the backend's law."
    return joined, note if law_bytes else ""


def _finding(rows: Sequence[Sequence[int]], say: Callable[[int], str]) -> str:
    sent = [sum(row) for row in rows]
    if not sum(sent):
        return "No rank sends anything"
    if len(set(sent)) == 1:
        return f"Each of {len(sent)} ranks sends {say(sent[0])}"
    top = max(range(len(sent)), key=lambda r: (sent[r], -r))
    return f"Rank {top} sends most: {say(sent[top])} of {say(sum(sent))}"


def _links(tallies: Sequence[Tally]) -> str:
    used = {(r, peer): (t.bytes_to[peer], n) for r, t in enumerate(tallies) for peer, n in t.messages_to.items() if n}
    if not used:
        return ""
    sender, receiver = min(used, key=lambda link: ([-n for n in used[link]], link))
    nbytes, messages = used[sender, receiver]
    full = f"rank {sender} to rank {receiver}, {nbytes:,} bytes in {_messages(messages)}"
    return f"{len(used):,} of {len(tallies) * (len(tallies) - 1):,} links are used; the fullest is {full}."


def _matrix(rows: list[list[int]], noun: str, tallies: Sequence[Tally]) -> go.Figure:
    import plotly.graph_objects as go

    size = len(rows)
    table = [[*row, sum(row)] for row in rows]
    table.append([sum(column) for column in zip(*table)])
    shade = [[None if r == c else n for c, n in enumerate(row)] + [0] for r, row in enumerate(rows)]
    fig = go.Figure()
    fig.add_heatmap(
        z=[*shade, [0] * (size + 1)],
        zmin=0,
        zmax=max([1, *map(max, rows)]),
        colorscale=[[0, "#FFFFFF"], [1, FORWARD.colour]],
        showscale=False,
        xgap=1,
        ygap=1,
        hovertext=[[_hover(tallies, r, c) for c in range(size + 1)] for r in range(size + 1)],
        hoverinfo="text",
    )
    text = _text(table, noun)
    _write(fig, table, text)
    places, names = list(range(size + 1)), [*map(str, range(size)), "all"]
    fig.update_yaxes(range=[size + 0.5, -0.5], tickvals=places, ticktext=[f"rank {n}" for n in names[:-1]] + ["all"])
    fig.update_xaxes(range=[-0.5, size + 0.5], tickvals=places, ticktext=names, title_text=f"to rank, in {text.unit}")
    fig.update_xaxes(showgrid=False, ticks="", fixedrange=True).update_yaxes(showgrid=False, ticks="", fixedrange=True)
    return fig.update_layout(plot_bgcolor=GRID, showlegend=False)


def _write(fig: go.Figure, table: Sequence[Sequence[int]], text: Text) -> None:
    last = len(table) - 1
    cells = [(r, c, _number(n, text.step)) for r, row in enumerate(table) for c, n in enumerate(row)]
    for weight, sums in ((400, False), (700, True)):
        mine = [(r, c, t) for r, c, t in cells if (last in (r, c)) is sums and (sums or r != c)]
        if mine and text.step:
            y, x, texts = zip(*mine)
            font = {"size": text.font, "color": INK, "weight": weight}
            fig.add_scatter(x=x, y=y, text=texts, mode="text", textfont=font, hoverinfo="skip")


def _text(table: Sequence[Sequence[int]], noun: str) -> Text:
    largest, cell = table[-1][-1], NARROWEST / len(table)
    scaled = max((step for step in STEPS if step[0] <= largest and noun == "bytes"), default=(1, noun))
    for font, digit in FONTS:
        if len(f"{largest:,}") * digit <= cell:
            return Text(1, noun, font)
        if len("12.3") * digit <= cell and scaled[0] > 1:
            return Text(*scaled, font)
    return Text(0, noun, 0)


def _number(n: int, step: int) -> str:
    if not n or not step:
        return "·"
    return f"{n:,}" if step == 1 else f"{n / step:.3g}" if n >= step / 100 else "<0.01"


def _hover(tallies: Sequence[Tally], sender: int, receiver: int) -> str:
    size = len(tallies)
    senders = tallies if sender == size else [tallies[sender]]
    nbytes = sum(t.bytes if receiver == size else t.bytes_to[receiver] for t in senders)
    messages = sum(t.messages if receiver == size else t.messages_to[receiver] for t in senders)
    who = "all ranks send" if sender == size else f"rank {sender} sends"
    return f"{who} {nbytes:,} bytes to {'all' if receiver == size else f'rank {receiver}'}<br>in {_messages(messages)}"


def _messages(n: int) -> str:
    return f"{n:,} message" if n == 1 else f"{n:,} messages"
