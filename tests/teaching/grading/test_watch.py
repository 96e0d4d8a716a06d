"""Limits hold what a process and all below it take, and memory that forks share is taken once."""

import subprocess
import sys
import time

import pytest

from lt_core.comm import host
from lt_core.teaching.grading.watch import Limits, Watch

HELD = """
import os, sys, time
held = bytearray(os.urandom(1 << 20) * 100)
pipes = [os.pipe() for _ in range(4)]
for read, write in pipes:
    if os.fork() == 0:
        os.write(write, b".")
        time.sleep(60)
for read, write in pipes:
    os.read(read, 1)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def forked():
    """A process below which one holds 100 MB, and has four forks."""
    above = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HELD!r}])"
    with subprocess.Popen([sys.executable, "-c", above], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        watch = Watch(process, Limits())
        watch._over(time.monotonic() + 60)  # it has seen them, and can end them
        yield process
        watch.end()


@pytest.mark.skipif(not host.LINUX, reason="only Linux says what is shared")
def test_what_forks_share_is_counted_once(forked):
    def over(memory_bytes):
        return Watch(forked, Limits(memory_bytes=memory_bytes))._over(time.monotonic() + 60)

    assert over(300 << 20) == ""  # each of five holds it: 500 MB and more
    assert over(80 << 20).startswith("it took 1") and over(80 << 20).endswith(" of memory, at most 83.9 MB")
