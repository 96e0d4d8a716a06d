"""In a real kernel: what a notebook stores, an interrupt that gives the prompt back, and nothing left afterwards."""

import os
import signal
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from lt_core.comm import host

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]


class Kernel:
    """A kernel that runs cells as `make labs` does; `run` gives a cell's outputs as they are stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = NotebookClient(new_notebook(), timeout=100, kernel_name="python3", allow_errors=True)
        self.pids: list[int] = []
        self.heard: set[tuple] = set()

    def run(self, source: str) -> list[dict]:
        """The outputs of one cell."""
        self.client.nb.cells.append(new_code_cell(source))
        return self.client.execute_cell(self.client.nb.cells[-1], len(self.client.nb.cells) - 1).outputs

    def listens(self) -> set[tuple]:
        """The addresses at which the kernel's process can be reached."""
        found = psutil.Process(self.client.km.provisioner.pid).net_connections("inet")
        return {one.laddr for one in found if one.status == psutil.CONN_LISTEN}

    def interrupt_when_opened(self, pipe: Path) -> threading.Thread:
        """Interrupt the kernel as soon as somebody opens the pipe to write."""

        def act():
            with open(pipe):
                os.kill(self.client.km.provisioner.pid, signal.SIGINT)

        thread = threading.Thread(target=act)
        thread.start()
        return thread


def texts(outputs):
    return [output["data"]["text/plain"] for output in outputs]


@pytest.fixture(scope="module")
def kernel():
    """A kernel with two ranks; when it has been shut down nothing may be left."""
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as runtime, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        kernel = Kernel(Path(runtime))
        with kernel.client.setup_kernel():
            assert kernel.run("from lt_core import magics; magics.load()") == []
            kernel.heard = kernel.listens()
            shown = texts(kernel.run("%%torchrun -n 2\nimport os\nos.getpid()"))
            kernel.pids = [int(line.split()[-1]) for line in shown[0].splitlines()]
            yield kernel
        assert [pid for pid in kernel.pids if host.alive(pid)] == []
        assert list(Path(runtime, "lt_core").iterdir()) == []


def test_a_cell_that_was_drawn_stores_one_text_sorted_by_rank(kernel):
    outputs = kernel.run(
        "%%torchrun\nimport threading\nfor step in range(3):\n    print(f'step {step}')\n"
        "    threading.Event().wait(0.2 + 0.1 * (1 - rank))\n    print(rank, step)\nrank"
    )
    steps = [f"ranks 0-1: step {step}\nrank 0: 0 {step}\nrank 1: 1 {step}\n" for step in range(3)]
    assert texts(outputs) == ["".join(steps) + "rank 0 -> 0\nrank 1 -> 1"]


def test_only_jupyters_own_ports_listen_and_on_the_loopback(kernel):
    assert {address.ip for address in kernel.heard} == {"127.0.0.1"} and kernel.listens() == kernel.heard


def test_an_interrupt_gives_the_prompt_back_and_the_ranks_live_on(kernel):
    pipe = kernel.folder / "pipe"
    os.mkfifo(pipe)
    interrupter = kernel.interrupt_when_opened(pipe)
    outputs = kernel.run(
        "%%torchrun\nkept = rank\nprint('old')\ncomm.barrier()\n"
        f"if rank == 0:\n    open({str(pipe)!r}, 'w').close()\n"
        "import threading\nthreading.Event().wait(90)"
    )
    interrupter.join()
    *shown, error = outputs
    assert texts(shown) == ["ranks 0-1: old"]
    assert (error["ename"], error["evalue"]) == ("Interrupted", "the cell was interrupted")
    assert texts(kernel.run("%%torchrun\nos.getpid() > 0, kept")) == ["rank 0 -> (True, 0)\nrank 1 -> (True, 1)"]
    assert all(map(host.alive, kernel.pids))


def test_an_error_is_stored_as_our_own_lines(kernel):
    *_, error = kernel.run("%%torchrun\nif rank == 1:\n    {}['x']\ncomm.barrier()")
    assert error["ename"] == "RankError"
    first, second, *_ = error["traceback"][0].splitlines()
    assert first == "RankError: rank 1 failed first: KeyError: 'x'" and second == "line 3 of the cell: {}['x']"


def test_the_number_of_a_cell_is_that_of_its_prompt(kernel):
    *_, error = kernel.run("%%torchrun\n1 / 0")
    prompt = kernel.client.nb.cells[-1].execution_count
    assert f'  File "<cell {prompt}>", line 2, in <module>\n    1 / 0\n' in error["traceback"][0]


def test_outputs_of_other_code_in_the_cell_stay(kernel):
    outputs = kernel.run(
        "from IPython.display import display\nfor _ in range(2):\n    display('mine')\n"
        "    get_ipython().run_cell_magic('torchrun', '', 'import threading; threading.Event().wait(2.5)\\nrank')"
    )
    kept = [output["data"].get("text/plain") for output in outputs]
    assert [text for text in kept if text] == ["'mine'", "rank 0 -> 0\nrank 1 -> 1"] * 2
