"""A notebook in JupyterLab's page: opened, run to its end, a cell added as a learner adds one."""

from typing import Any

import nbformat
from playwright.sync_api import Locator, Page

UNTIL = """const end = performance.now() + 150_000;
  const until = async found => {
    while (!found()) {
      if (performance.now() > end) throw Error(`waited 150 s for ${found}`);
      await new Promise(next => requestAnimationFrame(next));
    }
  };
  const app = window.jupyterapp;
"""
READY = f"""async () => {{
  {UNTIL}
  await app.restored;
  await until(() => app.shell.currentWidget?.context?.sessionContext);  // null for a while where all starts cold
  const panel = app.shell.currentWidget;
  await panel.context.ready;
  await panel.context.sessionContext.ready;
  await panel.context.sessionContext.session.kernel.info;  // a Run All before that is lost without a word
}}"""
RUN_ALL = f"""async () => {{
  {UNTIL}
  const panel = app.shell.currentWidget, kernel = panel.context.sessionContext.session.kernel;
  await app.commands.execute('notebook:run-all-cells');
  // A cell that raises on purpose ends the promise above early, though the cells behind it still run.
  await until(() => panel.content.widgets.every(cell => cell.model.type !== 'code' || cell.model.executionCount));
  await until(() => kernel.status === 'idle');
}}"""
CELLS = "() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.toJSON())"
ADD = """async source => {
  const app = window.jupyterapp, notebook = app.shell.currentWidget.content;
  notebook.activeCellIndex = notebook.widgets.length - 1;
  await app.commands.execute('notebook:insert-cell-below');
  notebook.activeCell.model.sharedModel.setSource(source);
  notebook.activate();
}"""


def opened(page: Page, url: str, name: str, token: str) -> None:
    """Open a notebook and hold until its kernel has answered."""
    page.goto(f"{url}/lab/tree/{name}?token={token}&reset")
    page.wait_for_function("window.jupyterapp")
    page.evaluate(READY)


def run_all(page: Page) -> list[Any]:
    """Run all cells, and give the code cells with what they put out."""
    page.evaluate(RUN_ALL)
    return codes(page)


def codes(page: Page) -> list[Any]:
    """The code cells as they would be saved."""
    return [cell for cell in map(nbformat.from_dict, page.evaluate(CELLS)) if cell.cell_type == "code"]


def run_below(page: Page, source: str) -> Locator:
    """Add a cell at the end, run it by the keyboard, and give the place where it shows something."""
    page.evaluate(ADD, source)
    page.keyboard.press("Control+Enter")
    return page.locator(".jp-CodeCell").last.locator(".jp-OutputArea-output")
