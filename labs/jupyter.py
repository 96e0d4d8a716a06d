"""JupyterLab as a process and in a page: started, listened to until it says where it is, a notebook opened and run."""

import queue
import subprocess
import threading
from collections.abc import Iterable, Mapping

from playwright.sync_api import Page

from labs.source import LabError

START_S = 60
FLAGS = (  # of Chromium: nothing of its own over the network
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
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


def started(*words: Iterable[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a command whose words come in several lists."""
    command = [word for some in words for word in some]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def address(server: subprocess.Popen[str]) -> str:
    """Return the URL which the server prints when it listens; what it prints later is read and dropped."""
    found: queue.Queue[str] = queue.Queue()
    threading.Thread(target=watch, args=(server, found), daemon=True).start()
    try:
        url = found.get(timeout=START_S)
    except queue.Empty:
        raise LabError(f"JupyterLab did not start within {START_S} s") from None
    if not url.startswith("http"):
        raise LabError(f"JupyterLab ended:\n{url}")
    return url


def watch(server: subprocess.Popen[str], found: queue.Queue[str]) -> None:
    """Put the URL where it is waited for, or the last lines of a server that ended."""
    said = []
    for line in server.stderr:
        said.append(line)
        if "http://127.0.0.1" in line or "http://localhost" in line:
            found.put(line[line.index("http") :].split("/lab")[0])
    found.put("".join(said[-20:]))


def end(server: subprocess.Popen[str]) -> None:
    """End it in order, or else at once."""
    server.terminate()
    try:
        server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def opened(page: Page, url: str, name: str, token: str) -> None:
    """Open a notebook and hold until its kernel has answered."""
    page.goto(f"{url}/lab/tree/{name}?token={token}&reset")
    page.wait_for_function("window.jupyterapp")
    page.evaluate(READY)
