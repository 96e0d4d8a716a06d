"""A class's machines in one picture: a line of JSON a learner, and who would win a ring of four over which bytes.

bytes a second |        . ben       a ring waits 6 latencies and then sends 1.5 n: who stands on the left wins small
               |  . ana             tensors, who stands high wins large ones. Rack, office and kitchen stand there
               |      ◇ office      to compare with.
               +------------- latency
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from math import ceil, floor, isfinite, log10
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from lt_core.base.cluster import KITCHEN, OFFICE, RACK, Cluster, Wire
from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text, rate_text, seconds_text
from lt_core.collectives import ring
from lt_core.views.show import Figure
from lt_core.views.style import BLUE, CURVES, INK, PALE, escaped, seconds_ticks, sized, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

SIZES = (1_000, 100_000_000)  # bytes: a small tensor, a large one
RANKS = 4
SIDES = ("top center", "bottom center")  # of a mark, in turn from left to right: near ones keep their names
SQUARE, TRIES = 512, 5  # of the product that is timed


class Machine(NamedTuple):
    """A learner's machine: its link as measured by ping-pong, and what one core of it computes."""

    wire: Wire
    flops_per_s: float


def machine_line(machine: Cluster, name: str) -> str:
    """One line of JSON to hand to the teacher: latency and bandwidth of `here(comm)`, and flop/s measured now.

    name: under which the class knows you.
    """
    wire = machine.inner
    said = {"latency_s": wire.latency_s, "bytes_per_s": wire.bytes_per_s, "flops_per_s": _flops_per_s()}
    return json.dumps({"machine": name, **{key: float(f"{value:.3g}") for key, value in said.items()}})


def class_chart(lines: Iterable[str]) -> Figure:
    """The machines of a class on two axes, from `machine_line`s; of two lines with one name the later one counts.

    Errors: no line; one that is no such JSON, named by its number.
    """
    machines = dict(_read(number, line) for number, line in enumerate(lines, 1) if line.strip())
    if not machines:
        raise UserError("a chart of no machine", expected="a line a machine, as machine_line prints it")
    fig = sized(_draw(machines), CURVES)
    wires = [*(one.wire for one in machines.values()), RACK, OFFICE, KITCHEN]
    low, high = _decades([wire.latency_s for wire in wires])
    fig.update_xaxes(**seconds_ticks(low, high), title_text="latency of a message", showgrid=True)
    fig.update_xaxes(range=[low - 0.1, high + 0.1])
    rates = [wire.bytes_per_s for wire in wires]
    fig.update_yaxes(**_rates(*_decades(rates)), title_text="bandwidth", showgrid=True)
    fig.update_yaxes(range=[log10(min(rates)) - 0.2, log10(max(rates)) + 0.3])  # room for names above and below
    title = "Left: small tensors are fast. Up: large ones are"
    words = f"{title}. Latency against bandwidth, with rack, office and kitchen to compare with."
    who = " ".join(f"{_winner(machines, n)} wins a ring of {RANKS} at {bytes_text(n)}." for n in SIZES)
    under = f"links by ping-pong; a ring of {RANKS} waits 6 latencies and sends 1.5 n"
    return Figure(titled(fig.update_layout(showlegend=False), title, under), words, who, _rows(machines))


def _flops_per_s() -> float:
    x, seconds = torch.ones(SQUARE, SQUARE), []
    for _ in range(TRIES):
        begun_s = perf_counter()
        x @ x
        seconds.append(perf_counter() - begun_s)
    return 2 * SQUARE**3 / median(seconds)


def _read(number: int, line: str) -> tuple[str, Machine]:
    try:
        said = json.loads(line)
        name = str(said["machine"])
        values = [float(said[key]) for key in ("latency_s", "bytes_per_s", "flops_per_s")]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"line {number} is no machine", line.strip()[:60], "what machine_line prints") from None
    if not all(isfinite(value) and value > 0 for value in values):
        raise UserError(f"line {number} has no place on logarithmic axes", values, "numbers above 0")
    latency_s, bytes_per_s, flops_per_s = values
    return name, Machine(Wire(name, latency_s, bytes_per_s), flops_per_s)


def _winner(machines: Mapping[str, Machine], nbytes: int) -> str:
    return min(machines, key=lambda name: ring.law_seconds(RANKS, nbytes, machines[name].wire))


def _draw(machines: Mapping[str, Machine]) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    theirs = sorted((one.wire for one in machines.values()), key=lambda wire: wire.latency_s)
    solid = {"symbol": "circle", "size": 12, "color": BLUE, "line": {"color": INK, "width": 1}}
    hollow = {"symbol": "diamond-open", "size": 12, "color": PALE, "line": {"width": 2}}
    for wires, mark in ((theirs, solid), ([RACK, OFFICE, KITCHEN], hollow)):
        fig.add_scatter(
            x=[w.latency_s for w in wires], y=[w.bytes_per_s for w in wires], text=[escaped(w.name) for w in wires],
            textposition=[side for side, _ in zip(cycle(SIDES), wires)], mode="markers+text", marker=mark,
            cliponaxis=False, hovertext=[escaped(str(w)) for w in wires], hoverinfo="text",
        )  # fmt: skip
    return fig


def _decades(values: Sequence[float]) -> tuple[int, int]:
    return floor(log10(min(values))), ceil(log10(max(values)))


def _rates(lowest: int, highest: int) -> dict[str, Any]:
    """A log axis in bits a second, as wires are sold."""
    values = [10.0**k / 8 for k in range(lowest, highest + 2)]
    return {"type": "log", "tickvals": values, "ticktext": [rate_text(v) for v in values], "minor_ticks": ""}


def _rows(machines: Mapping[str, Machine]) -> tuple[tuple[str, ...], ...]:
    ends = [f"ring of {RANKS}, {bytes_text(n)}" for n in SIZES]
    lines = [
        (
            name,
            f"{rate_text(one.wire.bytes_per_s)}, {seconds_text(one.wire.latency_s)}",
            f"{one.flops_per_s / 1e9:.3g} Gflop/s",
            *(seconds_text(ring.law_seconds(RANKS, n, one.wire)) for n in SIZES),
        )
        for name, one in machines.items()
    ]
    return (("machine", "link", "one core", *ends), *lines)
