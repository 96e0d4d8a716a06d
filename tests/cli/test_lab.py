"""`ltlab lab` opens JupyterLab on a learner's copies, hands options on, and says what is wrong with a folder."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from jupyter_client import BlockingKernelClient
from typer.testing import CliRunner

from lt_core.cli import lab
from lt_core.cli.main import app

ROOT = Path(__file__).parents[2]
FIRST = min((ROOT / "labs").glob("[0-9]*.ipynb")).name


def called(*words):
    return CliRunner().invoke(app, ["lab", *words], prog_name="ltlab")


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What the process would have become: its program, its arguments, its folder, the first place of its PATH."""
    found = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(os, "execv", lambda *command: found.append((*command, os.getcwd(), os.environ["PATH"])))
    return found


@pytest.mark.parametrize("between", [[], ["--"]])
def test_options_are_handed_on(begun, tmp_path, between):
    done = called("--folder", "mine", *between, "--no-browser", "--port", "8899", FIRST)
    assert done.exit_code == 0, done.output
    ((program, arguments, where, path),) = begun
    assert (program, where) == (sys.executable, str(tmp_path / "mine"))
    assert arguments[1:4] == ["-P", "-m", "jupyterlab"]
    assert arguments[4:] == [
        f"--config={ROOT}/labs/settings/jupyter_lab_config.py", "--no-browser", "--port", "8899", FIRST,
    ]  # fmt: skip
    assert path == f"{Path(sys.executable).parent}:/usr/bin"  # so that its terminals know ltlab


def test_it_says_what_it_copied_and_where_the_solutions_are(begun, tmp_path):
    new, opens = called("--folder", "mine").output.splitlines()
    assert new.startswith(f"new in {tmp_path}/mine: ") and FIRST in new
    assert opens == f"JupyterLab opens {tmp_path}/mine; solutions/ there holds every lab solved, to read"
    assert (tmp_path / "mine" / "solutions" / FIRST).is_file() and (tmp_path / "mine" / "README.md").is_file()


def test_a_reset_opens_nothing(begun, tmp_path):
    number = FIRST.split("_")[0]
    assert called("--folder", "mine", "--reset", number).output == f"{FIRST} is fresh\n"
    assert called("--folder", "mine", "--reset", number).output.startswith(f"{FIRST} is fresh; what you had is in ")
    assert begun == [] and len(list((tmp_path / "mine").glob("*.ipynb"))) == 2


def test_wrong_uses(begun, tmp_path):
    unknown = called("--folder", "mine", "--reset", FIRST, "--reset", "99")
    assert unknown.exit_code == 2 and "there is no lab '99'; there are: " in " ".join(unknown.output.split())
    both = called("--folder", "mine", "--reset", FIRST, "--no-browser")
    assert both.exit_code == 2 and "--reset opens nothing, so there is no use for --no-browser" in both.output
    for slip, meant in ("--rest", "--reset"), ("--foldr=mine", "--folder"):
        done = called("--folder", "mine", slip, "20")
        assert done.exit_code == 2 and f"there is no {slip}; did you mean {meant}?" in done.output
    absent = called("--folder", "mine", "nope", "--no-browser")
    said = " ".join(absent.output.split())
    assert absent.exit_code == 2 and f"there is no nope to open; there are: {FIRST}, " in said
    assert begun == [] and not (tmp_path / "mine").exists()


def test_a_notebook_of_one_s_own_can_be_opened(begun, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own.ipynb").write_text("{}")
    assert called("--folder", "mine", "own.ipynb").exit_code == 0 and begun[0][1][-1] == "own.ipynb"


def test_a_folder_that_takes_no_files_is_named(begun, tmp_path):
    (tmp_path / "file").write_text("")
    done = called("--folder", "file/mine")
    assert done.exit_code == 1 and begun == []
    assert done.stderr == (
        f"ltlab lab: the labs cannot be copied to {tmp_path}/file/mine; got Not a directory: {tmp_path}/file/mine; "
        "expected a folder to write in; try: --folder DIR\n"
    )


def test_an_installed_package_has_no_labs(begun, tmp_path, monkeypatch):
    monkeypatch.setattr(lab, "CHECKOUT", tmp_path)
    done = called()
    assert done.exit_code == 1 and not (tmp_path / "my_labs").exists()
    assert done.stderr == (
        "ltlab lab: the labs belong to the repository, not to the installed package; got no labs/ beside it; "
        "try: clone it, and there: make lab\n"
    )


def test_without_jupyterlab_the_way_to_it_is_said(begun, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = called("--folder", "mine")
    assert done.exit_code == 1 and "JupyterLab is not installed here" in done.stderr and begun == []


def listening(host, port):
    """Come back when it does: JupyterLab names its address a moment before."""
    until_s = time.monotonic() + 10
    while time.monotonic() < until_s:
        with suppress(ConnectionRefusedError), socket.create_connection((host, port), timeout=10):
            return
    raise AssertionError(f"nobody listens at {host}:{port}")


def ready(client):
    """Come back when the kernel answers: one whose heart does not beat yet is taken for a dead one."""
    until_s = time.monotonic() + 40
    while True:
        try:
            return client.wait_for_ready(timeout=30)
        except RuntimeError:
            if time.monotonic() > until_s:
                raise


@contextmanager
def server(tmp_path, environment, port):
    """A real JupyterLab, begun in another folder than the checkout, and its address."""
    ltlab = Path(sys.executable).with_name("ltlab")
    command = [ltlab, "lab", "--folder", "mine", "--no-browser", "--port", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        lines = iter(process.stderr.readline, b"")
        address = next(line for line in lines if b"http://" in line).decode().split("http://")[1].split("/")[0]
        listening(*address.split(":"))
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.processes
def test_a_kernel_works_in_the_learner_s_folder_though_the_port_was_taken(tmp_path):
    token = secrets.token_hex(16)
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"JUPYTER_TOKEN": token, "IPYTHONDIR": str(tmp_path / "ipython")}
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        server(tmp_path, os.environ | own, taken.getsockname()[1]) as address,
    ):

        def asked(path, data=None):
            headers = {"Authorization": f"token {token}"}
            request = urllib.request.Request(f"http://{address}/api/{path}", json.dumps(data).encode(), headers)
            request.method = "POST" if data else "GET"
            with urllib.request.urlopen(request, timeout=30) as reply:
                return json.load(reply)

        listed = {entry["name"] for entry in asked("contents")["content"]}
        assert {FIRST, "README.md", "solutions"} <= listed
        notebook = {"path": FIRST, "name": FIRST, "type": "notebook", "kernel": {"name": "python3"}}
        kernel = asked("sessions", notebook)["kernel"]["id"]
        client = BlockingKernelClient(connection_file=str(tmp_path / "RUNTIME" / f"kernel-{kernel}.json"))
        client.load_connection_file()
        client.start_channels()
        try:
            ready(client)
            code = "from lt_core.teaching import predict; predict('20.bytes', 'how many', guess=3)"
            assert client.execute_interactive(code, timeout=50, output_hook=print)["content"]["status"] == "ok"
        finally:
            client.stop_channels()
    assert '"guess": 3' in (tmp_path / "mine" / ".lt_learner.jsonl").read_text()
