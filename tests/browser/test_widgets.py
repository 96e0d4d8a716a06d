"""Each widget in JupyterLab: moved by keyboard and mouse, drawn in place, spoken; nothing leaves the machine."""

import jupytext
import nbformat
import pytest
from nbformat import NotebookNode
from playwright.sync_api import Locator, Page, expect

from labs.jupyter import opened
from tests.browser.conftest import ROOT, shot
from tests.browser.notebook import run_all, run_below

pytestmark = [pytest.mark.browser, pytest.mark.timeout(170)]
REVEAL = """from lt_core.teaching import reveal
reveal("99.sent", 1.75, why="2 (p - 1) / p")
reveal("99.order", "tree")"""
VIEW, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
VERSION = {"version_major": 2, "version_minor": 0}
LINE, PLOT = ".lt-line", ".js-plotly-plot"


@pytest.fixture
def page(lab, browser):
    """The cells of widgets_src.py, run, in a window as narrow as a laptop's."""
    nbformat.write(stale(jupytext.read(ROOT / "tests/browser/widgets_src.py")), lab.folder / "widgets.ipynb")
    page = browser.page
    page.set_viewport_size({"width": 1000, "height": 900})
    opened(page, lab.url, "widgets.ipynb", lab.token)
    assert not [output for cell in run_all(page) for output in cell.outputs if output.output_type == "error"]
    for seen, count in ((LINE, 3), (f"{PLOT} .gtitle", 3), (".widget-text, .widget-radio", 2)):
        page.wait_for_function(f"document.querySelectorAll('{seen}').length === {count}")
    return page


def stale(book: NotebookNode) -> NotebookNode:
    """The notebook as it was saved with the widgets of a kernel that is gone, some with their state and some without.

    ipywidgets#1667: such a notebook blocked the page, or its kernel.
    """
    codes = [cell for cell in book.cells if cell.cell_type == "code"]
    for cell, model in zip(codes, ("kept", "lost")):
        cell.outputs = [nbformat.v4.new_output("display_data", data={VIEW: {"model_id": model, **VERSION}})]
    label = {"model_name": "LabelModel", "model_module": "@jupyter-widgets/controls", "model_module_version": "2.0.0"}
    book.metadata.widgets = {STATE: {"state": {"kept": {**label, "state": {"value": "before"}}}, **VERSION}}
    return book


def cells(page: Page, what: str) -> list[Locator]:
    """The cells that show such a thing."""
    found = page.locator(".jp-CodeCell", has=page.locator(what))
    return [found.nth(k) for k in range(found.count())]


def says(cell: Locator, text: str) -> None:
    expect(cell.locator(".lt-line")).to_contain_text(text)


def titled(cell: Locator, text: str) -> None:
    expect(cell.locator(".gtitle").first).to_have_text(text)


def test_widgets_move_by_keyboard_and_mouse(page):
    """All of them in one start."""
    explorer, broken, stepper = cells(page, LINE)
    drawn = "[...document.querySelectorAll('.js-plotly-plot .main-svg:first-child')]"
    page.evaluate(f"window.first = {drawn}")
    exploring(page, explorer)
    failing(page, broken)
    stepping(page, stepper)
    assert page.evaluate(f"{drawn}.every((svg, k) => svg === window.first[k])")  # changed in place, never drawn anew
    widths = page.eval_on_selector_all(
        ".js-plotly-plot", "plots => plots.map(p => [p.clientWidth, p.parentNode.clientWidth])"
    )
    assert all(plot == room > 500 for plot, room in widths), widths
    predictions(page)


def exploring(page, explorer):
    """A slider, a box to tick, a list, by keyboard."""
    explorer.locator(".noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    says(explorer, "At 10,000 bytes the doubling is faster")
    titled(explorer, "At 10,000 bytes the doubling is faster")
    explorer.locator("input[type=checkbox]").focus()
    page.keyboard.press("Space")
    says(explorer, "distance: yes. At 10,000 bytes")
    explorer.locator("select").focus()
    page.keyboard.press("ArrowDown")  # JupyterLab would take it for its cells
    says(explorer, "wire: kitchen. At 10,000 bytes")
    shot(page, "widget_explore")


def failing(page, broken):
    """An error in words, and the picture before it stays."""
    broken.locator(".noUi-handle").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    says(broken, "✘ parts: 0. ZeroDivisionError: division by zero (line 2 of ratio). The picture is the one before.")
    page.keyboard.press("ArrowRight")
    says(broken, "12 / 1 = 12.")


def stepping(page, stepper):
    """Rounds by arrow, by button, by mouse."""
    handle = stepper.locator(".noUi-handle")
    handle.focus()
    for number, finished in enumerate([0, 0, 4]):
        page.keyboard.press("ArrowRight")
        titled(stepper, f"Round {number}, reduce-scatter: {finished} of 16 cells are finished")
    says(stepper, "rank 0 sends chunk 2 to rank 1, 30 + 3,303 = 3,333, finished")
    stepper.get_by_role("button", name="step").click()
    titled(stepper, "Round 3, all-gather: 8 of 16 cells are finished")
    stepper.get_by_role("button", name="back").focus()
    page.keyboard.press("Enter")
    titled(stepper, "Round 2, reduce-scatter: 4 of 16 cells are finished")
    stepper.locator(".lt-line").scroll_into_view_if_needed()
    shot(page, "widget_stepper")
    drag_to_end(handle, stepper.locator(".noUi-base"), page)
    says(stepper, "Every rank owns every finished chunk, the same on every rank: 1,111, 2,222, 3,333, 4,444.")


def predictions(page):
    """A number and a choice, said by keyboard alone; the answer beside them."""
    number, choice = cells(page, ".widget-text, .widget-radio")
    number.locator("input").focus()
    page.keyboard.type("7/4")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(number.get_by_role("alert")).to_contain_text("99.sent: you said 1.75 n, fairly sure; kept in ")
    choice.get_by_role("button", name="a hunch").click()
    expect(choice.get_by_role("alert")).to_have_text("99.order: an answer first, then how sure you are.")
    choice.locator("input").first.focus()
    page.keyboard.press("Space")
    choice.get_by_role("button", name="would bet on it").press("Enter")
    expect(choice.get_by_role("alert")).to_contain_text("99.order: you said ring, would bet on it; kept in ")
    number.scroll_into_view_if_needed()
    shot(page, "widget_predict")
    shown = run_below(page, REVEAL)
    expect(shown.first).to_contain_text("✔ right You said 1.75 n, fairly sure. It is 1.75 n. 3 of 3")
    expect(shown.last).to_contain_text("✘ not it You said ring, would bet on it. It is tree. 0 of ")
    shot(page, "widget_reveal")


def drag_to_end(handle: Locator, track: Locator, page) -> None:
    start, whole = handle.bounding_box(), track.bounding_box()
    y = start["y"] + start["height"] / 2
    page.mouse.move(start["x"] + start["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(whole["x"] + whole["width"], y, steps=8)
    page.mouse.up()
