"""Clause 6: what ranks print comes in whole lines, by rank, while they run, whatever it is and however they end."""

import os
import threading

import pytest

from lt_core.comm.group import Line, settled
from lt_core.comm.group.streams import STATE_S

pytestmark = pytest.mark.processes


def test_what_all_print_is_shown_once(cell):
    seen = cell("import sys\nprint('all')\nprint('rank', rank)\nprint('error', file=sys.stderr)")
    assert sorted(seen.texts("out")) == [((0,), "rank 0"), ((0, 1), "all"), ((1,), "rank 1")]
    assert seen.texts("err") == [((0, 1), "error")]


def test_lines_are_shown_while_the_cell_runs(cell, tmp_path):
    """Not only at its end: the ranks wait until the first line has been seen here."""
    seen_it = tmp_path / "seen"

    class Screen(list):
        def append(self, line):
            super().append(line)
            seen_it.touch()

    wait = f"import os, time\nwhile not os.path.exists({str(seen_it)!r}): time.sleep(0.01)\n"
    seen = cell(f"print('first')\n{wait}print('second')", lines=Screen())
    assert seen.texts() == [((0, 1), "first"), ((0, 1), "second")]


def test_what_c_code_and_child_processes_print_is_shown(cell):
    text = (
        "import ctypes, os, subprocess\nctypes.CDLL(None).printf(b'from C\\n')\n"
        "subprocess.run(['echo', 'from a child'])\nos.write(1, b'from the descriptor\\n')"
    )
    assert {text for _, text in cell(text).texts()} == {"from C", "from a child", "from the descriptor"}


def test_each_ranks_order_is_kept_and_no_line_is_lost(cell):
    seen = cell("for i in range(500): print(f'{rank} {i}')")
    for rank in (0, 1):
        assert [text for ranks, text in seen.texts() if rank in ranks] == [f"{rank} {i}" for i in range(500)]


def test_a_line_without_an_end_is_shown_at_the_end(cell):
    assert cell("print('no end', end='')").texts() == [((0, 1), "no end")]


def test_bytes_that_are_no_text_are_replaced(cell):
    assert cell("import os\nos.write(1, b'caf\\xe9 \\xff\\n')\nprint('ü \\udcff')").texts() == [
        ((0, 1), "caf� �"), ((0, 1), "ü \\udcff")
    ]  # fmt: skip


def test_ten_megabytes_without_an_end(cell):
    seen = cell("import os\nfor _ in range(10): os.write(1, b'x' * 1_000_000)")
    (line,) = seen.lines
    assert line.ranks == (0, 1) and len(line.text) < 70_000 and line.text.endswith("xxx ... (10 MB in all)")
    assert cell("rank").values == {0: "0", 1: "1"}


def test_long_output_is_bounded_with_a_note(cell):
    seen = cell("for i in range(100_000): print(i)")
    texts = [text for _, text in seen.texts()]
    assert len(texts) < 5000 and texts[-1] == "99999"
    assert any(text.startswith("... ") and " lines are not shown" in text for text in texts)


def test_a_progress_bar_is_shown_now_and_then_and_saved_as_one_line(cell):
    bar = "for i in range(101):\n    print(f'\\r{i} %', end='', file=sys.stderr, flush=True)\n    time.sleep(0.005)"
    seen = cell(f"import sys, time\n{bar}\nprint(file=sys.stderr)")
    states = [text for ranks, text in seen.texts("err") if 0 in ranks and text.endswith("\r")]
    assert 2 <= len(states) <= seen.seconds / STATE_S + 1
    assert [(line.ranks, line.text) for line in settled(seen.lines)] == [((0, 1), "100 %")]


def test_what_comes_between_cells_is_shown_with_the_next_and_marked(cell, tmp_path):
    over, said = tmp_path / "over", tmp_path / "said"
    os.mkfifo(over)
    os.mkfifo(said)
    text = (
        f"import threading\ndef say():\n    open({str(over)!r}).close()\n    print('from a thread')\n"
        f"    open({str(said)!r}, 'w').close()\nif rank: threading.Thread(target=say).start()"
    )
    assert cell(text).lines == []
    over.write_bytes(b"")  # opening either waits for the other end
    said.read_bytes()
    assert cell("print('new')").lines == [Line((1,), "out", "from a thread", late=True), Line((0, 1), "out", "new")]


def test_a_cell_that_closes_its_streams_still_ends(group, cell):
    seen = cell("import os, sys\nsys.stdout.close()\nsys.stderr = None\nos.close(1)")
    assert seen.error is None and seen.seconds < 5
    assert cell("rank").values == {0: "0", 1: "1"}


def test_what_was_written_before_a_kill_is_shown(group, cell):
    """On stderr: of the test before, stdout is closed."""
    text = "import os, signal, sys\nprint('one', file=sys.__stderr__)\nos.write(2, b'half a line')\n"
    seen = cell(f"{text}os.kill(os.getpid(), signal.SIGKILL)")
    assert sorted(seen.texts("err")) == sorted([((0, 1), "one"), ((0, 1), "half a line")])
    assert not group.alive


def test_a_saved_page_is_stable(cell):
    text = "import time\ntime.sleep(0.1 * (1 - rank))\nprint('mine', rank)\nprint('all')"
    cell("1")
    saved = [settled(cell(text).lines), settled(cell(text.replace("1 - rank", "rank")).lines)]
    assert saved[0] == saved[1] == [
        Line((0,), "out", "mine 0"), Line((1,), "out", "mine 1"), Line((0, 1), "out", "all")
    ]  # fmt: skip


def test_the_reply_does_not_wait_for_a_silent_thread(cell):
    """nbval waits 5 s for late output, whatever its timeout: nothing of ours stays behind a reply."""
    cell("1")
    assert cell("import threading, time\nthreading.Thread(target=time.sleep, args=(8,)).start()").seconds < 5
    assert {thread.name for thread in threading.enumerate() if not thread.daemon} == {"MainThread"}
