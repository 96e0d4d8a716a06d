"""Notebooks of learners, written in a line."""

import json
from pathlib import Path


def write(path: Path, *cells: str) -> Path:
    """A notebook of these code cells, with a ticked output that nobody may believe."""
    ticked = {"output_type": "stream", "name": "stdout", "text": "20.reduce_scatter: passed, all 11 properties hold."}
    made = [{"cell_type": "code", "source": cell, "outputs": [ticked], "metadata": {}} for cell in cells]
    made.insert(0, {"cell_type": "markdown", "source": ["# 20\n", "words"], "metadata": {}})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4}))
    return path


IMPORTS = "import torch\nfrom lt_core.base.units import bounds\nrank = 3"
HELPER = """def passed(comm, out, like):
    came = torch.empty_like(like)
    comm.exchange([(out, (comm.rank + 1) % comm.size)], [(came, (comm.rank - 1) % comm.size)])
    return came
"""
RIGHT = """def reduce_scatter(comm, x):
    y, p = x.clone(), comm.size
    for k in range(p - 1):
        out, into = (bounds(y.numel(), (comm.rank - k - one) % p, p) for one in (0, 1))
        y[slice(*into)] += passed(comm, y[slice(*out)], y[slice(*into)])
    return y
"""
