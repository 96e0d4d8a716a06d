"""A control for each parameter, by the type of its range; all of them work by Tab, arrows and Enter.

range(2, 9)                 whole numbers             slider
[1_000, 10_000, 100_000]    numbers, in this order    slider
["ring", "tree"]            anything else             drop-down
{"office": wire}            names of such values      drop-down
bool                        yes or no                 check box
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from lt_core.base.errors import UserError

UNITS = {"us": "µs", "ms": "ms", "s": "s", "bytes": "bytes", "gbit_per_s": "Gbit/s"}  # names end in them
Range = range | Iterable[Any] | Mapping[str, Any] | type[bool]


def options(name: str, values: Range) -> Sequence[tuple[str, Any]] | range:
    """The values that a parameter can take, each with the text that stands for it. Errors: none, or no range."""
    if isinstance(values, range) and values:
        return values  # a range may be long, and needs no texts
    if values is bool:
        return [("no", False), ("yes", True)]
    if isinstance(values, Mapping) and values:
        return [(str(key), value) for key, value in values.items()]
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        plain = values.tolist() if hasattr(values, "tolist") else list(values)
        if plain:
            return [(text(value), value) for value in plain]
    raise UserError(
        f"{name} has nothing to choose from", values, "range(2, 9), a list of values, {name: value} or bool"
    )


def text(value: Any) -> str:
    """A value as a person reads it: `110,000`, `0.25`, `ring`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{float(value):,.4g}" if isinstance(value, Real) else str(value)


def worded(name: str) -> str:
    """A parameter's name as a person reads it: `distance costs`, and of `latency_us` the unit: `latency, µs`."""
    found = re.fullmatch(rf"(\w+?)_({'|'.join(UNITS)})", name)
    return f"{found[1]}, {UNITS[found[2]]}".replace("_", " ") if found else name.replace("_", " ")


def stands(name: str, several: Sequence[tuple[str, Any]] | range, value: Any) -> str:
    """`ranks: 8`: where a control is that stands at a value."""
    shown = text(value) if isinstance(several, range) else next(t for t, v in several if v == value)
    return f"{worded(name)}: {shown}"


def place(ranges: Mapping[str, Sequence[tuple[str, Any]] | range], found: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each parameter: the one found, else the first. Errors: what is in no range."""
    for name, value in found.items():
        if name not in ranges:
            raise UserError(f"found: there is no parameter {name}", expected=f"some of {', '.join(ranges)}")
        if value not in _values(ranges[name]):
            raise UserError(f"found: {name} is never {text(value)}", expected=_listed(ranges[name]))
    return {name: found.get(name, _values(several)[0]) for name, several in ranges.items()}


def _values(several: Sequence[tuple[str, Any]] | range) -> Sequence[Any]:
    return several if isinstance(several, range) else [value for _, value in several]


def _listed(several: Sequence[tuple[str, Any]] | range) -> str:
    if isinstance(several, range):
        return f"one of {several}"
    shown = [label for label, _ in several]
    return f"one of {', '.join(shown[:8])}" + (f", ... {shown[-1]}" if len(shown) > 8 else "")


def control(name: str, several: Sequence[tuple[str, Any]] | range) -> Any:
    """The ipywidget of a parameter, at its first value."""
    import ipywidgets

    how: dict[str, Any] = {"description": worded(name), "style": {"description_width": "initial"}}
    how["layout"] = {"width": "min(100%, 520px)"}
    if isinstance(several, range):
        first, last = sorted((several[0], several[-1]))
        return ipywidgets.IntSlider(
            value=several[0], min=first, max=last, step=abs(several.step), readout_format=",d", **how
        )
    values = [value for _, value in several]
    if set(map(type, values)) == {bool}:
        return ipywidgets.Checkbox(value=values[0], indent=False, **how)
    kind = ipywidgets.SelectionSlider if all(isinstance(value, Real) for value in values) else ipywidgets.Dropdown
    return kind(options=list(several), value=values[0], **how)


def label(widget: Any) -> str:
    """The text of the value at which a control stands."""
    chosen = getattr(widget, "label", None)
    return chosen if isinstance(chosen, str) else text(widget.value)
