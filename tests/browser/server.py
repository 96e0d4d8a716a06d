"""JupyterLab as a process of the tests': started, listened to until it says where it is, ended with its kernels."""

import queue
import subprocess
import threading
from collections.abc import Iterable, Mapping

START_S = 60


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
        raise AssertionError(f"JupyterLab did not start within {START_S} s") from None
    assert url.startswith("http"), f"JupyterLab ended:\n{url}"
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
