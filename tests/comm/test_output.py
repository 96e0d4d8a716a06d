"""What ranks print arrives in whole lines, all of it, whatever its bytes are."""

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lt_core.comm import output


@pytest.fixture
def passed(tmp_path):
    """A pipe passed on to stderr, and its writing end."""
    got = output.Passed(tmp_path / "pipe", "stderr")
    assert stat.S_IMODE(os.stat(tmp_path / "pipe").st_mode) == 0o600
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    yield got, writer
    os.close(writer)


def test_lines_wait_until_they_are_whole(passed, capsys):
    got, writer = passed
    os.write(writer, b"one\ntw")
    got.pump()
    assert capsys.readouterr().err == "one\n"
    os.write(writer, "o, größer\nthree".encode())
    got.close()
    assert capsys.readouterr().err == "two, größer\nthree\n"


def test_nothing_written_is_nothing_passed_on(passed, capsys):
    passed[0].pump()
    passed[0].close()
    assert capsys.readouterr().err == ""


def test_bytes_that_are_no_text_do_no_harm(passed, capsys):
    os.write(passed[1], b"\xff\xfe\0 ok\n")
    passed[0].close()
    assert capsys.readouterr().err == "\ufffd\ufffd\0 ok\n"


def test_a_line_without_end_is_cut(passed, capsys):
    got, writer = passed
    for _ in range(3):
        os.write(writer, b"x" * 30_000)
        got.pump()
    assert capsys.readouterr().err == "x" * 90_000 + "\n"


@pytest.mark.parametrize("stream", [None, io.TextIOWrapper(io.BytesIO(), encoding="ascii")], ids=["none", "ascii"])
def test_a_launch_may_have_no_stream_or_a_poor_one(passed, monkeypatch, stream):
    """A daemon's sys.stderr is None: its launch failed at the first line that a rank printed."""
    monkeypatch.setattr(sys, "stderr", stream)
    os.write(passed[1], "größer\n".encode())
    passed[0].close()
    assert passed[0].last == "größer"
    assert stream is None or stream.buffer.getvalue() == b"gr\\xf6\\xdfer\n"


def test_the_last_words_are_the_last_line_that_says_something(passed):
    os.write(passed[1], b"ValueError: no\n\n   \n")
    passed[0].close()
    assert passed[0].last == "ValueError: no"


def test_what_c_code_printed_is_written_out():
    code = "import ctypes, os, sys; sys.path.insert(0, sys.argv[1]); from lt_core.comm import output;"
    code += "ctypes.CDLL(None).printf(b'from C'); output.flush(); os._exit(0)"
    package = str(Path(output.__file__).parents[2])
    assert subprocess.run([sys.executable, "-c", code, package], capture_output=True).stdout == b"from C"
