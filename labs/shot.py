"""A screenshot of the ring stepper as a learner has it: lab 20 in real JupyterLab, stepped to where chunks are whole.

It starts JupyterLab and a browser on temporary folders, and ends both.
"""

import io
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from labs.jupyter import FLAGS, RUN_ALL, address, end, opened, started
from labs.picture import chromium
from labs.source import LabError

LABS = Path(__file__).parent
SIZE = {"width": 1120, "height": 720}
STEPS = 3  # after round 2 each chunk is whole on one rank
TO_TOP = """cell => {
  const outer = document.querySelector('.jp-WindowedPanel-outer');
  outer.scrollTop += cell.getBoundingClientRect().top - outer.getBoundingClientRect().top - 8;
}"""


def stepper(name: str = "20_all_reduce.ipynb") -> bytes:
    """Return the page as a PNG: the cell that shows the stepper, and what it shows after some steps."""
    with served(name) as (url, token), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(120_000)
        opened(page, url, name, token)
        page.evaluate(RUN_ALL)
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        drawn = stepped(page)
        browser.close()
    return drawn


def stepped(page: Page) -> bytes:
    """Press `step` and return what is on the page then."""
    cell = page.locator(".jp-CodeCell", has=page.get_by_role("button", name="step ▶"))
    for _ in range(STEPS):
        cell.get_by_role("button", name="step ▶").click()
    cell.get_by_text(f"After round {STEPS - 1}").first.wait_for()
    cell.evaluate(TO_TOP)
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)  # plotly's own redrawing at the new place has no event to wait for
    small = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    out = io.BytesIO()
    small.save(out, "PNG", optimize=True)
    return out.getvalue()


@contextmanager
def served(name: str) -> Iterator[tuple[str, str]]:
    """JupyterLab on a copy of one lab: where it listens, and the token that opens it."""
    if not chromium():
        raise LabError("no Chromium to look with; on Debian: apt install chromium")
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp", ignore_cleanup_errors=True) as place:
        folder, token = Path(place, "labs"), secrets.token_hex(16)
        folder.mkdir()
        shutil.copy(LABS / name, folder)
        own = {f"JUPYTER_{kind}_DIR": f"{place}/{kind}" for kind in ("CONFIG", "DATA", "RUNTIME")}
        own |= {"JUPYTER_TOKEN": token, "IPYTHONDIR": f"{place}/ipython", "XDG_RUNTIME_DIR": place}
        server = started(
            [sys.executable, "-m", "jupyter", "lab", f"--config={LABS}/settings/jupyter_lab_config.py"],
            ["--no-browser", "--ServerApp.port=0", f"--ServerApp.root_dir={folder}"],
            ["--LabApp.expose_app_in_browser=True", f"--LabApp.workspaces_dir={place}/workspaces"],
            [f"--LabApp.user_settings_dir={place}/settings"],
            environment=os.environ | own,
        )
        try:
            yield address(server), token
        finally:
            end(server)
