"""The house style: exact values, fills that the colour-blind can tell apart, nothing forced on the user's figures."""

import itertools

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
import pytest

from lt_core.base import Op, UserError
from lt_core.views import style

# Machado, Oliveira and Fernandes 2009, table of severity 1.0, for linear RGB.
SEEN_BY = {
    "everybody": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ @ np.ones(3)


def lab(colour: str, seen_by: str) -> np.ndarray:
    """CIE L*a*b* (D65) of a #RRGGBB colour as such an eye sees it."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    x, y, z = (v / w for v, w in zip(TO_XYZ @ np.clip(np.array(SEEN_BY[seen_by]) @ linear, 0, 1), WHITE))
    f = [v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, seen_by: str = "everybody") -> float:
    return float(np.linalg.norm(lab(one, seen_by) - lab(other, seen_by)))  # CIE76


def test_the_distance_is_that_of_the_standard():
    assert distance("#FFFFFF", "#000000") == pytest.approx(100, abs=0.02)
    assert lab("#FF0000", "everybody") == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    assert distance("#B00000", "#506000", "protanopia") < 30 < distance("#B00000", "#506000")  # red-green confusion


@pytest.mark.parametrize("seen_by", SEEN_BY)
def test_the_four_fills_can_be_told_apart(seen_by):
    four = [style.FORWARD, style.BACKWARD, style.WEIGHTS, style.UPDATE]
    near = min((distance(a.colour, b.colour, seen_by), a.name, b.name) for a, b in itertools.combinations(four, 2))
    assert near[0] >= 18, near


def test_fills_are_the_house_s():
    told = {f.name: (f.colour, f.hatch, f.hatch_colour, f.opacity, f.size) for f in style.FILLS}
    assert told["forward"][:2] == ("#86BCEB", "")
    assert told["backward"] == ("#F5C25B", "\\", "#1F2933", 0.7, 9)
    assert told["weights"] == ("#3FA07E", "x", "#1F2933", 0.45, 9)
    assert told["update"][:2] == ("#F6DDE8", "")
    assert told["send"] == ("#FFFFFF", "/", "#56B4E9", 1.0, 9)
    assert told["receive and add"] == ("#86BCEB", "/", "#FFFFFF", 0.7, 9)
    assert told["receive a copy"][:2] == ("#F5C25B", "")
    assert told["waiting"] == ("#FFFFFF", ".", "#9AA5B1", 1.0, 6)


def test_no_two_fills_look_alike_and_every_verb_has_one():
    assert len({(f.colour, f.hatch) for f in style.FILLS}) == len({f.name for f in style.FILLS}) == len(style.FILLS)
    assert set(style.FILL_OF) == set(Op)
    assert style.FORWARD.marker()["pattern"]["solidity"] == 0.15
    assert style.FORWARD.marker()["line"] == {"color": "#1F2933", "width": 1.0}


def test_the_template_has_the_house_s_values():
    layout = style.template().layout
    assert layout.font.family == "'Liberation Sans', Arial, Helvetica, 'DejaVu Sans', sans-serif"
    assert (layout.font.size, layout.font.color) == (14, "#1F2933")
    assert (layout.title.font.size, layout.title.font.weight, layout.title.xanchor) == (16, 600, "left")
    assert (layout.title.subtitle.font.size, layout.title.subtitle.font.color) == (13, "#52606D")
    assert layout.margin.to_plotly_json() == {"l": 8, "r": 24, "t": 64, "b": 72, "pad": 0}
    assert layout.colorway[:5] == ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
    assert (layout.bargap, layout.bargroupgap) == (0.28, 0.08)
    assert (layout.xaxis.zeroline, layout.xaxis.ticks, layout.xaxis.ticklen) == (False, "outside", 4)
    assert (layout.paper_bgcolor, layout.plot_bgcolor) == ("#FFFFFF", "#FFFFFF")
    assert layout.legend.orientation == "h" and layout.legend.font.size == 13


def test_the_user_s_own_figures_keep_their_template():
    before = pio.templates.default
    style.template()
    assert pio.templates.default == before != "lt"
    assert pio.templates["lt"].layout.bargap == 0.28  # but they may ask for it by name
    assert go.Figure().layout.template.layout.bargap != 0.28


def test_sized_leaves_the_width_to_the_page():
    layout = style.sized(go.Figure(layout_width=500), 380).layout
    assert (layout.height, layout.width, layout.autosize) == (380, None, True)


@pytest.mark.parametrize("title", ["x" * 60, "The ring wins above 110 kB"])
def test_a_title_that_fits(title):
    assert style.titled(go.Figure(), title, "y" * 84).layout.title.text == title


@pytest.mark.parametrize(("title", "under"), [("x" * 61, ""), ("x", "y" * 85)])
def test_a_title_that_does_not_fit(title, under):
    with pytest.raises(UserError, match=r"is too long; got (61|85) characters; expected a .* of at most (60|84)"):
        style.titled(go.Figure(), title, under)


def test_text_is_no_markup():
    assert style.titled(go.Figure(), "2ADD0<1 & more").layout.title.text == "2ADD0&lt;1 &amp; more"


def test_ticks_are_decades_with_their_unit():
    assert style.bytes_ticks(2, 6)["ticktext"] == ["100 B", "1 kB", "10 kB", "100 kB", "1 MB"]
    assert style.bytes_ticks(2, 3)["tickvals"] == [100, 1000]
    assert style.seconds_ticks(-5, 0)["ticktext"] == ["10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"]
    axis = go.Figure().update_xaxes(**style.seconds_ticks(-4, 0)).layout.xaxis
    assert (axis.type, axis.tickvals) == ("log", (1e-4, 1e-3, 1e-2, 1e-1, 1.0))
