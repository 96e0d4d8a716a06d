"""How quantities are cut, written and read: chunk bounds, bytes, seconds, rates.

Chunk i of p of n elements is [n*i//p, n*(i+1)//p), everywhere: for n = 10, p = 4 the cuts are 0 2 5 7 10.
"""

from __future__ import annotations

import re
from math import floor, log10

from lt_core.base.errors import UserError

_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_BITS = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def bounds(elements: int, index: int, parts: int, count: int = 1) -> tuple[int, int]:
    """The half-open range of elements which chunk `index` (and the `count - 1` after it) of `parts` covers."""
    return elements * index // parts, elements * (index + count) // parts


def bytes_text(nbytes: float) -> str:
    """`1.68 MB`: decimal prefixes, three digits, as wires are sold."""
    return _scaled(nbytes, ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B")))


def seconds_text(seconds: float) -> str:
    """`20.2 ms`: three digits in the largest unit that keeps the number above one."""
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")))


def rate_text(bytes_per_s: float) -> str:
    """`10 Gbit/s`: a wire's bandwidth in bits, as wires are named."""
    steps = ((10**12, "Tbit/s"), (10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"), (1, "bit/s"))
    return _scaled(8 * bytes_per_s, steps)


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Both numbers, `5,813` and `5,807`: three digits, or as many more as it takes to tell them apart."""
    for digits in range(3, 18):
        texts = _plain(one, digits), _plain(other, digits)
        if texts[0] != texts[1]:
            break
    return texts


def parse_bytes(text: str) -> int:
    """Bytes in `16 MiB`, `1.5 kB`, `4096`."""
    number, unit = _parsed(text, {"": 1, **_BYTES}, "a size like 16 MiB, 1.5 kB or 4096")
    return round(number * unit)


def parse_seconds(text: str) -> float:
    """Seconds in `0.1 ms`, `10 us`, `2 s`."""
    number, unit = _parsed(text, _SECONDS, "a time like 0.1 ms, 10 us or 2 s")
    return number * unit


def parse_rate(text: str) -> float:
    """Bytes a second in `10 Gbit/s` or `1.2 GB/s`."""
    rates = {**{unit: factor / 8 for unit, factor in _BITS.items()}, **{f"{u}/s": f for u, f in _BYTES.items()}}
    number, unit = _parsed(text, rates, "a rate like 10 Gbit/s or 1.2 GB/s")
    return number * unit


def _plain(value: float, digits: int) -> str:
    """With thousands separators and no exponent, as long as it stays short."""
    if not value or not 1e-6 <= abs(value) < 1e15:
        return f"{value:,.{digits}g}"
    text = f"{value:,.{max(0, digits - 1 - floor(log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    for step, unit in steps:
        # the comparison is with the rounded number, so that 999.96 B reads 1 kB and not 1e+03 B
        if abs(float(f"{value:.3g}")) >= step:
            return f"{float(f'{value:.3g}') / step:.4g} {unit}"
    return f"{value:.3g} {steps[-1][1]}" if value else f"0 {steps[-1][1] if steps[-1][1] != 'ns' else 's'}"


def _parsed(text: str, units: dict[str, float], expected: str) -> tuple[float, float]:
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*", text)
    if not found or found[2] not in units:
        raise UserError(
            f"{text!r} cannot be read", expected=expected, attempt=f"units are {', '.join(filter(None, units))}"
        )
    return float(found[1]), units[found[2]]
