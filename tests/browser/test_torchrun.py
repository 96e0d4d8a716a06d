"""A cell on ranks in JupyterLab: seen while it runs, stopped by the button, kept as one text, gone with its kernel."""

import tempfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from lt_core.comm import host

pytestmark = [pytest.mark.browser, pytest.mark.timeout(170)]

CELLS = [
    "from lt_core import magics\nmagics.load()",
    "%%torchrun -n 2\nimport os\nos.getpid()",
    "%%torchrun\nfrom threading import Event\nprint('begun by all')\nprint('waits', rank)\nEvent().wait(120)",
    "%%torchrun\nprint('after', rank)\ncomm.size",
]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
READY = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  while (!app.shell.currentWidget?.context?.sessionContext) await new Promise(next => requestAnimationFrame(next));
  const panel = app.shell.currentWidget;
  await panel.context.ready;
  await panel.context.sessionContext.ready;
  await panel.context.sessionContext.session.kernel.info;
  panel.content.activeCellIndex = 0;
}"""
SAVED = "() => window.jupyterapp.shell.currentWidget.context.model.toJSON().cells.map(cell => cell.outputs)"
SHUT = "() => window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()"


@pytest.fixture
def runtime(monkeypatch):
    """A folder for groups that no other notebook of this user has."""
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder, "lt_core")


def test_a_cell_is_seen_stopped_and_kept(runtime, request):
    lab, browser = request.getfixturevalue("lab"), request.getfixturevalue("browser")
    cells = [new_code_cell(cell) for cell in CELLS]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), lab.folder / "ranks.ipynb")
    page = browser.page
    page.set_default_timeout(90_000)
    expect.set_options(timeout=60_000)
    page.goto(f"{lab.url}/lab/tree/ranks.ipynb?token={lab.token}")
    page.wait_for_function("window.jupyterapp")
    page.evaluate(READY)
    shown = [page.locator(".jp-CodeCell").nth(k).locator(".jp-OutputArea-output") for k in range(len(CELLS))]

    for _ in range(3):
        page.keyboard.press("Shift+Enter")
    expect(shown[1]).to_contain_text("rank 1 -> ")
    pids = [int(line.split()[-1]) for line in shown[1].inner_text().splitlines()]
    for text in ("ranks 0-1: begun by all", "rank 0: waits 0", "rank 1: waits 1", "... ranks 0-1: in no collective"):
        expect(shown[2]).to_contain_text(text)
    page.locator('[data-jp-item-name="interrupt"]').click()
    expect(shown[2].last).to_have_text("Interrupted: the cell was interrupted")
    expect(shown[2].first).to_have_text("ranks 0-1: begun by all\nrank 0: waits 0\nrank 1: waits 1")
    page.keyboard.press("Shift+Enter")
    expect(shown[3]).to_have_text("rank 0: after 0\nrank 1: after 1\nranks 0-1 -> 2")
    outputs = page.evaluate(SAVED)  # behind the last cell there is a new one
    assert [[output["output_type"] for output in cell] for cell in outputs[: len(CELLS)]] == [
        [], ["display_data"], ["display_data", "error"], ["display_data"],
    ]  # fmt: skip
    assert all(map(host.alive, pids))

    page.evaluate(SHUT)
    assert not any(map(host.alive, pids)) and list(runtime.iterdir()) == []
    assert browser.errors == [] and browser.outside == []
