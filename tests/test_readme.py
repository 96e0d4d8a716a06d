"""What the README asks a reader to run does what it says."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.processes
@pytest.mark.parametrize("program", PROGRAMS, ids=["replica", "ring"])
def test_its_programs_give_four_equal_results(tmp_path, program):
    (tmp_path / "mine.py").write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, tmp_path / "mine.py"], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    first, *others = ast.literal_eval(done.stdout)
    assert first and others == [first] * 3
