"""Each widget in JupyterLab: moved by keyboard and mouse, drawn in place, spoken; nothing leaves the machine."""

import jupytext
import nbformat
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import ROOT
from tests.browser.test_lab import RUN_ALL

pytestmark = [pytest.mark.browser, pytest.mark.timeout(170)]


@pytest.fixture
def cells(lab, browser):
    """The cells of widgets_src.py that show a widget, run, in a window as narrow as a laptop's."""
    nbformat.write(jupytext.read(ROOT / "tests/browser/widgets_src.py"), lab.folder / "widgets.ipynb")
    page = browser.page
    page.set_default_timeout(90_000)
    expect.set_options(timeout=20_000)
    page.set_viewport_size({"width": 1000, "height": 900})
    page.goto(f"{lab.url}/lab/tree/widgets.ipynb?token={lab.token}")
    page.wait_for_function("window.jupyterapp")
    codes = [cell for cell in page.evaluate(RUN_ALL) if cell["cell_type"] == "code"]
    assert not [output for cell in codes for output in cell["outputs"] if output["output_type"] == "error"]
    page.wait_for_function("document.querySelectorAll('.lt-line').length === 3")
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot .gtitle').length === 3")
    return [page.locator(".jp-CodeCell", has=page.locator(".lt-line")).nth(k) for k in range(3)]


def says(cell: Locator, text: str) -> None:
    expect(cell.locator(".lt-line")).to_contain_text(text)


def titled(cell: Locator, text: str) -> None:
    expect(cell.locator(".gtitle").first).to_have_text(text)


def test_widgets_move_by_keyboard_and_mouse(cells, browser):
    page, (explorer, broken, stepper) = browser.page, cells
    page.evaluate("window.first = [...document.querySelectorAll('.js-plotly-plot .main-svg:first-child')]")

    explorer.locator(".noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    says(explorer, "size 10,000: At 10,000 bytes the doubling is faster")
    titled(explorer, "At 10,000 bytes the doubling is faster")
    explorer.locator("input[type=checkbox]").focus()
    page.keyboard.press("Space")
    says(explorer, "distance yes: At 10,000 bytes")
    explorer.locator("select").focus()
    page.keyboard.press("ArrowDown")  # JupyterLab would take it for its cells
    says(explorer, "wire kitchen: At 10,000 bytes")
    page.screenshot(path=shot("explore"))

    broken.locator(".noUi-handle").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    says(broken, "✘ parts 0: ZeroDivisionError: division by zero (line 2 of ratio). The picture is the one before.")
    page.keyboard.press("ArrowRight")
    says(broken, "parts 1: 12 / 1 = 12.")

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
    page.screenshot(path=shot("stepper"))
    drag_to_end(handle, stepper.locator(".noUi-base"), page)
    says(stepper, "Every rank owns every finished chunk, the same on every rank: 1,111, 2,222, 3,333, 4,444.")

    now = "[...document.querySelectorAll('.js-plotly-plot .main-svg:first-child')]"
    assert page.evaluate(f"{now}.every((svg, k) => svg === window.first[k])")  # changed in place, never drawn anew
    widths = page.eval_on_selector_all(
        ".js-plotly-plot", "plots => plots.map(p => [p.clientWidth, p.parentNode.clientWidth])"
    )
    assert all(plot == room > 500 for plot, room in widths), widths
    assert browser.errors == [] and browser.outside == []


def drag_to_end(handle: Locator, track: Locator, page) -> None:
    start, whole = handle.bounding_box(), track.bounding_box()
    y = start["y"] + start["height"] / 2
    page.mouse.move(start["x"] + start["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(whole["x"] + whole["width"], y, steps=8)
    page.mouse.up()


def shot(name: str) -> str:
    (ROOT / "reports").mkdir(exist_ok=True)
    return str(ROOT / "reports" / f"widget_{name}.png")
