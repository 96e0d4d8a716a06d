"""JupyterLab as `make lab` starts it, in a Chromium as a person has it; the machine is left as it was.

Settings, workspaces and run-time files are temporary, the notebooks are copies, and whatever the page asks of another
machine is refused and noted.
"""

import os
import queue
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, sync_playwright

from labs.picture import chromium

ROOT = Path(__file__).resolve().parent.parent.parent
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking".split()
FLAGS += "--disable-component-update --disable-sync".split()
START_S = 60


class Lab(NamedTuple):
    """A running JupyterLab: where it listens, what opens it, and the folder of its notebooks."""

    url: str
    token: str
    folder: Path


class Browser(NamedTuple):
    """A page, and what went wrong in it: errors on its console, requests that would have left the machine."""

    page: Page
    errors: list[str]
    outside: list[str]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Start JupyterLab on copies of the labs, and end it with its kernels."""
    folder, token = tmp_path / "labs", secrets.token_hex(16)
    folder.mkdir()
    for notebook in (ROOT / "labs").glob("[0-9]*.ipynb"):
        shutil.copy(notebook, folder)
    command = [sys.executable, "-m", "jupyter", "lab", f"--config={ROOT}/labs/settings/jupyter_lab_config.py"]
    command += ["--no-browser", "--ServerApp.port=0", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.expose_app_in_browser=True", f"--LabApp.workspaces_dir={tmp_path}/workspaces"]
    command += [f"--LabApp.user_settings_dir={tmp_path}/settings"]
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"JUPYTER_TOKEN": token, "IPYTHONDIR": str(tmp_path / "ipython")}
    server = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | own, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield Lab(address(server), token, folder)
    finally:
        server.terminate()
        try:
            server.wait(timeout=15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def address(server: subprocess.Popen) -> str:
    """Return the URL which the server prints when it listens; what it prints later is read and dropped."""
    found: queue.Queue[str] = queue.Queue()
    threading.Thread(target=watch, args=(server, found), daemon=True).start()
    try:
        url = found.get(timeout=START_S)
    except queue.Empty:
        raise AssertionError(f"JupyterLab did not start within {START_S} s") from None
    assert url.startswith("http"), f"JupyterLab ended:\n{url}"
    return url


def watch(server: subprocess.Popen, found: queue.Queue[str]) -> None:
    said = []
    for line in server.stderr:
        said.append(line)
        if "http://127.0.0.1" in line or "http://localhost" in line:
            found.put(line[line.index("http") :].split("/lab")[0])
    found.put("".join(said[-20:]))


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Open a page of 1280 x 900 in which everything that goes wrong is noted."""
    executable = chromium()
    if not executable:
        pytest.skip("no Chromium: on Debian, apt install chromium")
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        page = chrome.new_page(viewport={"width": 1280, "height": 900})
        seen = Browser(page, [], [])
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
        page.route("**/*", lambda route: stay(route, seen.outside))
        yield seen
        chrome.close()


def stay(route: Route, outside: list[str]) -> None:
    """Let a request pass if it stays on this machine."""
    where = urlsplit(route.request.url)
    if where.hostname in {"127.0.0.1", "localhost"} or where.scheme in {"data", "blob"}:
        route.continue_()
    else:
        outside.append(route.request.url)
        route.abort()
