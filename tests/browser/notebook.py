"""A notebook in JupyterLab's page: run to its end, a cell added as a learner adds one."""

from typing import Any

import nbformat
from playwright.sync_api import Locator, Page

from labs.jupyter import RUN_ALL

CELLS = "() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.toJSON())"
ADD = """async source => {
  const app = window.jupyterapp, notebook = app.shell.currentWidget.content;
  notebook.activeCellIndex = notebook.widgets.length - 1;
  await app.commands.execute('notebook:insert-cell-below');
  notebook.activeCell.model.sharedModel.setSource(source);
  notebook.activate();
}"""


def run_all(page: Page) -> list[Any]:
    """Run all cells, and give the code cells with what they put out."""
    begin_all(page)
    return all_ran(page)


def begin_all(page: Page) -> None:
    """Run all cells without waiting for them."""
    page.evaluate(f"() => {{ window.ran = ({RUN_ALL})(); }}")


def all_ran(page: Page) -> list[Any]:
    """Wait for what `begin_all` began, and give the code cells with what they put out."""
    page.evaluate("window.ran")
    return codes(page)


def codes(page: Page) -> list[Any]:
    """The code cells as they would be saved."""
    return [cell for cell in map(nbformat.from_dict, page.evaluate(CELLS)) if cell.cell_type == "code"]


def run_below(page: Page, source: str) -> Locator:
    """Add a cell at the end, run it by the keyboard, and give the place where it shows something."""
    page.evaluate(ADD, source)
    page.keyboard.press("Control+Enter")
    return page.locator(".jp-CodeCell").last.locator(".jp-OutputArea-output")
