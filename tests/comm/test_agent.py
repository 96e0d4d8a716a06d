"""What runs as torchrun is torchrun, and what of torch it leaves for later comes when it is asked for."""

import subprocess
import sys

from lt_core.comm import agent

CODE = """
import gc, sys
from lt_core.comm import agent
agent.main(["--help"])
import torch
print("activate_meta" in vars(sys.modules[agent.LATER]), hasattr(torch._meta_registrations, "__file__"))
print(callable(torch._meta_registrations.activate_meta), "activate_meta" in vars(torch._meta_registrations))
print(gc.isenabled(), any(isinstance(finder, agent.Later) for finder in sys.meta_path))
"""


def test_it_is_torchrun_and_what_waits_comes_when_it_is_asked_for():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert "--nproc-per-node" in done.stdout
    assert done.stdout.splitlines()[-3:] == ["False False", "True True", "True False"]


def test_other_modules_are_left_to_others():
    assert agent.Later().find_spec("json", None) is None
