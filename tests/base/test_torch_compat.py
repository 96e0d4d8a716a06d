"""A process's first sine is exact: a lab's oracle was 1e-9 off its ranks in one kernel of eight, and never twice."""

import subprocess
import sys

import pytest

PROCESSES = """
import os, sys, torch
from lt_core.base.torch_compat import settle

torch.set_num_threads(2)
inexact = 0
for _ in range(int(sys.argv[1])):
    if not (pid := os.fork()):
        settle()
        first, again = (torch.arange(8192.0).double().sin() for _ in range(2))
        os._exit(not torch.equal(first, again))
    inexact += bool(os.waitpid(pid, 0)[1])
print(inexact)
"""


@pytest.mark.processes
def test_the_first_sine_of_a_process_is_as_exact_as_the_second():
    """Without `settle` some 7 of 60 are not, where there are two cores."""
    command = [sys.executable, "-c", PROCESSES, "60"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=50).stdout == "0\n"
