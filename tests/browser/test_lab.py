"""A learner opens the first lab in JupyterLab and presses Run All: it runs to the end, draws, stays on the machine."""

from urllib.parse import urlsplit

import nbformat
import pytest

from tests.browser.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

RUN_ALL = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  const end = performance.now() + 150_000;
  const until = async found => {
    while (!found()) {
      if (performance.now() > end) throw Error(`waited 150 s for ${found}`);
      await new Promise(next => requestAnimationFrame(next));
    }
  };
  await until(() => app.shell.currentWidget?.context?.sessionContext);
  const panel = app.shell.currentWidget;
  await panel.context.ready;
  await panel.context.sessionContext.ready;
  const kernel = panel.context.sessionContext.session.kernel;
  await kernel.info;
  await app.commands.execute('notebook:run-all-cells');
  // A cell that raises on purpose ends the promise above early, though the cells behind it still run.
  await until(() => panel.content.widgets.every(cell => cell.model.type !== 'code' || cell.model.executionCount));
  await until(() => kernel.status === 'idle');
  return panel.content.widgets.map(cell => cell.model.toJSON());
}"""


def test_run_all_reaches_the_end_of_the_first_lab(lab, browser):
    name = min(path.name for path in lab.folder.glob("*.ipynb"))
    browser.page.set_default_timeout(60_000)
    browser.page.goto(f"{lab.url}/lab/tree/{name}?token={lab.token}")
    browser.page.wait_for_function("window.jupyterapp")
    cells = [nbformat.from_dict(cell) for cell in browser.page.evaluate(RUN_ALL)]
    codes = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in codes] == list(range(1, len(codes) + 1))
    raised = [cell.source for cell in codes if any(output.output_type == "error" for output in cell.outputs)]
    assert raised == [cell.source for cell in codes if "raises-exception" in cell.metadata.get("tags", [])]
    figures = [
        output
        for cell in codes
        for output in cell.outputs
        if "application/vnd.plotly.v1+json" in output.get("data", {})
    ]
    browser.page.wait_for_function(
        "count => document.querySelectorAll('.js-plotly-plot').length >= count", arg=len(figures)
    )
    heights = browser.page.eval_on_selector_all(".js-plotly-plot", "plots => plots.map(plot => plot.clientHeight)")
    assert len(heights) == len(figures) and all(height >= 100 for height in heights), heights
    browser.page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()
    (ROOT / "reports").mkdir(exist_ok=True)
    browser.page.screenshot(path=ROOT / "reports" / f"{name.removesuffix('.ipynb')}.png")
    assert browser.errors == [] and browser.outside == []


def test_without_its_token_jupyterlab_shows_nothing(lab, browser):
    browser.page.goto(f"{lab.url}/lab")
    assert urlsplit(browser.page.url).path == "/login"
    assert browser.page.evaluate("fetch('/api/contents').then(reply => reply.status)") == 403
