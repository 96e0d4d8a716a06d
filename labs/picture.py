"""Figures become pictures when a solution is committed: readers without a kernel see a PNG, and diffs stay small."""

import base64
import io
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kaleido
from nbformat import NotebookNode, from_dict
from PIL import Image

from labs.rules import size_faults
from labs.source import LabError

FIGURE, PICTURE, WIDGET = "application/vnd.plotly.v1+json", "image/png", "application/vnd.jupyter.widget-view+json"
WIDTH, HEIGHT, COLOURS = 860, 380, 64
SCALES = (2, 1.5, 1.25, 1.1)  # the next one where pictures would make the notebook too large


def chromium() -> str | None:
    """Return where this machine's Chromium or Chrome stands."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def camera() -> Iterator[None]:
    """Keep one browser for all figures: starting it takes seconds, a picture tenths of one."""
    browser = chromium()
    if not browser:
        raise LabError("no Chromium to draw the figures with; on Debian: apt install chromium fonts-liberation")
    if shutil.which("fc-list") and not subprocess.run(["fc-list", "Liberation Sans"], capture_output=True).stdout:
        raise LabError(
            "the font Liberation Sans is missing, figures would differ; on Debian: apt install fonts-liberation"
        )
    kaleido.start_sync_server(n=1, timeout=60, mathjax=False, path=browser)
    try:
        yield
    finally:
        kaleido.stop_sync_server()


def develop(book: NotebookNode) -> None:
    """Put a PNG with alt text in the place of each figure; its words (text/plain) stay."""
    drawn = [(output, output.data[FIGURE]) for output in figures(book)]
    for output, _ in drawn:
        words, metadata = output.data.get("text/plain"), output.metadata.get(PICTURE, {})
        if not words or not metadata.get("alt"):
            raise LabError("a figure without words or alt text: show it by lt_core.views.show")
        output.data = from_dict({"text/plain": words})
        output.metadata = from_dict({PICTURE: metadata})
    for scale in SCALES:
        for output, figure in drawn:
            width = output.metadata[PICTURE].get("width", WIDTH)
            output.data = from_dict({**output.data, PICTURE: png(figure, width, scale)})
        if not list(size_faults(book)):
            return


def figures(book: NotebookNode) -> list[NotebookNode]:
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    return [output for output in outputs if FIGURE in output.get("data", {})]


def png(figure: dict[str, Any], width: int, scale: float) -> str:
    """Return the figure as base64 of a PNG of few colours: a quarter of the bytes, no difference to the eye."""
    height = figure.get("layout", {}).get("height", HEIGHT)
    size = {"format": "png", "width": width, "height": height, "scale": scale}
    drawn = kaleido.calc_fig_sync({"data": figure["data"], "layout": figure["layout"]}, opts=size)
    out = io.BytesIO()
    of_few_colours(Image.open(io.BytesIO(drawn)).convert("RGB")).save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def of_few_colours(image: Image.Image) -> Image.Image:
    """Return the picture in at most 64 colours.

    They are chosen for what there is, not for how much of it: thin lines of eight colours stay eight colours. Then each
    moves to the middle of what it stands for: a grey band beside them stays grey.
    """
    return image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
