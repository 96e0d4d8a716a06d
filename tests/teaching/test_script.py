"""A script runs on its ranks as in a terminal, says why it failed, and leaves no process, whether it ends or not."""

import os
import time

import pytest

from lt_core.base.errors import Deadline, UserError
from lt_core.comm import host
from lt_core.teaching import run_script

pytestmark = pytest.mark.processes

HELLO = 'import os\nprint("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])\n'


@pytest.fixture
def left_over():
    """The processes that have been started below this one since, and live."""
    before = set(host.descendants(os.getpid()))
    return lambda: set(host.descendants(os.getpid())) - before


def test_each_rank_prints_and_nothing_is_left(tmp_path, left_over):
    (tmp_path / "hello.py").write_text(HELLO)
    assert run_script(tmp_path / "hello.py", 2) == ["rank 0 of 2", "rank 1 of 2"]
    assert left_over() == set()


def test_a_script_that_fails_says_why(tmp_path):
    (tmp_path / "lost.py").write_text("raise KeyError('no data')\n")
    with pytest.raises(UserError, match=r"lost\.py on 1 rank failed; got (.|\n)*KeyError: 'no data'"):
        run_script(tmp_path / "lost.py", 1)


def test_a_script_that_does_not_end_is_ended(tmp_path, left_over):
    (tmp_path / "stuck.py").write_text("import time\nwhile True:\n    time.sleep(60)\n")
    begun_s = time.monotonic()
    with pytest.raises(Deadline, match=r"stuck\.py on 1 rank had not ended after 4 s"):
        run_script(tmp_path / "stuck.py", 1, timeout_s=4)
    assert time.monotonic() - begun_s < 20 and left_over() == set()


def test_a_script_that_is_not_there():
    with pytest.raises(UserError, match=r"there is no script nowhere\.py; try: a cell with --save nowhere\.py"):
        run_script("nowhere.py", 2)
