"""JupyterLab as `make lab` starts it, in a Chromium as a person has it; the machine is left as it was.

One server and one browser serve all tests, a page each. Settings, workspaces and run-time files are temporary, the
notebooks are copies, and whatever a page asks of another machine is refused and noted.
"""

import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser as Chrome
from playwright.sync_api import BrowserContext, Page, Route, expect, sync_playwright

from labs.jupyter import FLAGS, address, end, started
from labs.picture import chromium

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST_MS = 60_000  # a wait for the page: a machine that tests is a busy one
SHUT = "() => window.jupyterapp?.serviceManager.sessions.shutdownAll()"


class Lab(NamedTuple):
    """A running JupyterLab: where it listens, what opens it, the folder of its notebooks, and that of their ranks; when
    it was asked for, on the monotonic clock."""

    url: str
    token: str
    folder: Path
    ranks: Path
    begun_s: float


class Browser(NamedTuple):
    """A page, and what went wrong in it: errors on its console, requests that would have left the machine."""

    page: Page
    errors: list[str]
    outside: list[str]


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory, chrome: Chrome) -> Iterator[Lab]:
    """JupyterLab on a learner's copies of the labs; it ends with its kernels."""
    folder, token = tmp_path_factory.mktemp("lab"), secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as runtime:  # short: sockets lie in it
        own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")}
        own |= {"JUPYTER_TOKEN": token, "IPYTHONDIR": str(folder / "ipython"), "XDG_RUNTIME_DIR": runtime}
        begun_s = time.monotonic()
        server = started(
            [str(Path(sys.executable).with_name("ltlab")), "lab", f"--folder={folder}/my_labs", "--no-browser"],
            ["--ServerApp.port=0", "--LabApp.expose_app_in_browser=True", f"--LabApp.workspaces_dir={folder}/spaces"],
            [f"--LabApp.user_settings_dir={folder}/settings"],
            environment=os.environ | own,
        )
        try:
            yield Lab(address(server), token, folder / "my_labs", Path(runtime, "lt_core"), begun_s)
        finally:
            end(server)


@pytest.fixture(scope="package")
def chrome() -> Iterator[Chrome]:
    """A browser without pages."""
    executable = chromium()
    if not executable:
        pytest.skip("no Chromium: on Debian, apt install chromium")
    expect.set_options(timeout=LONGEST_MS)
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=executable, args=FLAGS) as opened:
        yield opened


@pytest.fixture(scope="package")
def context(chrome: Chrome) -> BrowserContext:
    """What pages share: cookies, and what they have loaded already."""
    return chrome.new_context(viewport={"width": 1280, "height": 900})


@pytest.fixture
def browser(context: BrowserContext, lab: Lab) -> Iterator[Browser]:
    """A page in which everything that goes wrong is noted; with it its kernel ends, and nothing is left of ranks."""
    page = context.new_page()
    page.set_default_timeout(LONGEST_MS)
    seen = Browser(page, [], [])
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
    page.route("**/*", lambda route: stay(route, seen.outside))
    yield seen
    page.evaluate(SHUT)
    page.close()
    assert seen.errors == [] and seen.outside == []
    assert not lab.ranks.exists() or list(lab.ranks.iterdir()) == []


def stay(route: Route, outside: list[str]) -> None:
    """Let a request pass if it stays on this machine."""
    where = urlsplit(route.request.url)
    if where.hostname in {"127.0.0.1", "localhost"} or where.scheme in {"data", "blob"}:
        route.continue_()
    else:
        outside.append(route.request.url)
        route.abort()


def shot(page: Page, name: str) -> None:
    """Keep a picture of the page in reports/."""
    (ROOT / "reports").mkdir(exist_ok=True)
    page.screenshot(path=ROOT / "reports" / f"{name}.png")
