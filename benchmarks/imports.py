"""What `import lt_core` costs whoever has torch already: nothing heavy may come with it.

The first row is a new process that imports both, against one that imports torch alone; the second the seconds that
lt_core adds in such a process, against its bound. `launch` is taken as well, which brings what starts ranks.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.rows import Row, against_law, compare, printed

BENCH = "imports"
LAW_S = 0.3
TIMED = "import time; begun = time.perf_counter(); {}; print(time.perf_counter() - begun)"


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    yield compare(BENCH, "import torch, lt_core", new("import torch, lt_core"), new("import torch"), "plain")
    yield against_law(BENCH, "lt_core, beyond torch", new("import lt_core", "import torch"), LAW_S)
    yield against_law(BENCH, "lt_core.launch, beyond torch", new("from lt_core import launch", "import torch"), LAW_S)


def new(code: str, before: str = "pass") -> Callable[[], float]:
    """The seconds that `code` takes in a new process, once `before` has run there."""
    command = [sys.executable, "-c", f"{before}; {TIMED.format(code)}"]

    def timed() -> float:
        done = subprocess.run(
            command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=60, check=True
        )
        return float(done.stdout)

    return timed


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
