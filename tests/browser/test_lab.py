"""A learner opens the first lab in JupyterLab, presses Run All, goes on with cells of their own, and restarts it."""

import time
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import expect

from labs.jupyter import opened
from lt_core.comm import host
from tests.browser.conftest import ROOT, shot
from tests.browser.notebook import all_ran, begin_all, codes, run_below

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LABS = sorted(path.name for path in (ROOT / "labs").glob("[0-9]*.ipynb"))[:1]  # nbval runs all; add one to see it here
FIGURE, GRAPH = "application/vnd.plotly.v1+json", ".js-plotly-plot"
LONG = """%%torchrun
import subprocess
print('begun by all')
print('waits', rank)
subprocess.run(['sleep', '120'])
"""
RESTART = "() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()"
FIRST_PICTURE_S = 60  # from `make lab` on, with all that starts cold


@pytest.mark.parametrize("name", LABS)
def test_a_lab_runs_to_its_end_and_on(lab, browser, name):
    page = browser.page
    opened(page, lab.url, name, lab.token)
    assert page.evaluate("window.jupyterapp.shell.mode") == "single-document"
    begin_all(page)
    left_s = FIRST_PICTURE_S - (time.monotonic() - lab.begun_s)
    page.locator(GRAPH).first.wait_for(state="attached", timeout=max(1.0, 1e3 * left_s))
    cells = all_ran(page)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    raised = [cell.source for cell in cells if any(output.output_type == "error" for output in cell.outputs)]
    assert raised == [cell.source for cell in cells if "raises-exception" in cell.metadata.get("tags", [])]
    figures = [out for cell in cells for out in cell.outputs if FIGURE in out.get("data", {})]
    page.wait_for_function(f"count => document.querySelectorAll('{GRAPH}').length >= count", arg=len(figures))
    heights = page.eval_on_selector_all(GRAPH, "plots => plots.map(plot => plot.clientHeight)")
    assert len(heights) == len(figures) and all(height >= 100 for height in heights), heights
    page.locator(GRAPH).first.scroll_into_view_if_needed()
    shot(page, name.removesuffix(".ipynb"))
    own_cells(page)


def own_cells(page):
    """On ranks: seen while they run, stopped by the button with what they started, kept as one text; gone by a restart.

    (And by a shutdown: tests/magics/test_kernel.py shows that without a browser.)
    """
    shown = run_below(page, "%%torchrun -n 4\nimport os\nos.getpid()")
    expect(shown).to_contain_text("rank 3 -> ")
    pids = [int(line.split()[-1]) for line in shown.inner_text().splitlines()]
    shown = run_below(page, LONG)
    for text in ("ranks 0-3: begun by all", "rank 0: waits 0", "rank 3: waits 3", "... ranks 0-3: in no collective"):
        expect(shown).to_contain_text(text)
    shown.first.scroll_into_view_if_needed()
    started = [child.pid for pid in pids for child in psutil.Process(pid).children()]
    assert len(started) == 4
    shot(page, "long_cell")
    page.locator('[data-jp-item-name="interrupt"]').click()
    expect(shown.last).to_have_text("Interrupted: the cell was interrupted")
    waits = "\n".join(f"rank {r}: waits {r}" for r in range(4))
    expect(shown.first).to_have_text(f"ranks 0-3: begun by all\n{waits}")
    assert all(map(host.alive, pids)) and not any(map(host.alive, started))
    shown.last.scroll_into_view_if_needed()
    shot(page, "interrupted")
    shown = run_below(page, "%%torchrun\nprint('after', rank)\ncomm.size")
    after = "\n".join(f"rank {r}: after {r}" for r in range(4))
    expect(shown).to_have_text(f"{after}\nranks 0-3 -> 4")
    kept = [[output.output_type for output in cell.outputs] for cell in codes(page)[-3:]]
    assert kept == [["display_data"], ["display_data", "error"], ["display_data"]]
    assert all(map(host.alive, pids))
    page.evaluate(RESTART)
    assert not any(map(host.alive, pids))
    expect(run_below(page, "'rank' in globals()")).to_have_text("False")  # a kernel as new


def test_without_its_token_jupyterlab_shows_nothing(lab, chrome):
    with chrome.new_context() as stranger:
        page = stranger.new_page()
        page.goto(f"{lab.url}/lab")
        assert urlsplit(page.url).path == "/login"
        assert page.evaluate("fetch('/api/contents').then(reply => reply.status)") == 403
