# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Widgets: one cell each, for the browser to move

# %%
import plotly.graph_objects as go
import torch

from lt_core import launch
from lt_core.base import Trace
from lt_core.collectives import all_reduce, chunk_table, ring
from lt_core.teaching import predict
from lt_core.views import Figure, explore, stepper, style

# %% [markdown]
# ## Explore
# The ring and doubling on 8 ranks: where do they cross?

# %%
SIZES = [1_000, 10_000, 110_000, 1_000_000, 10_000_000]


def build(size, distance, wire):
    latency_s, bytes_per_s = wire
    ring_s = [14 * latency_s + 1.75 * n / bytes_per_s for n in SIZES]
    slower = 2 if distance else 1
    doubling_s = [3 * latency_s + 3 * slower * n / bytes_per_s for n in SIZES]
    fig = style.sized(go.Figure(), style.CURVES)
    for name, y, dash in (("ring", ring_s, "solid"), ("doubling", doubling_s, "dash")):
        fig.add_scatter(x=SIZES, y=y, name=name, mode="lines", line={"width": 3, "dash": dash})
    here = SIZES.index(size)
    spot = {"size": 12, "color": style.INK}
    fig.add_scatter(x=[size], y=[ring_s[here]], name="here", mode="markers", marker=spot)
    fig.update_xaxes(**style.bytes_ticks(3, 7), title_text="bytes")
    fig.update_yaxes(**style.seconds_ticks(-4, 0))
    faster = "ring" if ring_s[here] <= doubling_s[here] else "doubling"
    style.titled(fig, f"At {size:,} bytes the {faster} is faster", "8 ranks, law only")
    gap = abs(ring_s[here] - doubling_s[here]) * 1e3
    return Figure(fig, f"At {size:,} bytes the {faster} is faster, by {gap:.3g} ms.")


explore(
    build,
    found={"size": 110_000},
    size=SIZES,
    distance=bool,
    wire={"office": (1e-4, 125e6), "kitchen": (1e-3, 12.5e6)},
)

# %% [markdown]
# ## An error stays in its line


# %%
def ratio(parts):
    fig = style.titled(style.sized(go.Figure(go.Bar(x=[12 / parts])), 220), "Twelve over parts")
    return Figure(fig, f"12 / {parts} = {12 / parts:g}.")


explore(ratio, found={"parts": 2}, parts=range(3, -1, -1))

# %% [markdown]
# ## The ring, step by step


# %%
def record(comm):
    trace = Trace("ring", backend=comm.backend)
    x = torch.arange(1, 5) * 10**comm.rank
    all_reduce(comm, x, ring.schedule(comm.size), trace, watch=chunk_table)
    return trace


traces = launch(record, 4, backend="threads")
stepper(Trace.merge(traces), add="reduce-scatter", copy="all-gather")

# %% [markdown]
# ## Predict, a number and a choice

# %%
predict("99.sent", "bytes each rank sends, 8 ranks", unit="n")

# %%
predict("99.order", "which is faster?", options=["ring", "tree"])
