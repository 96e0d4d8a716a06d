"""python -m labs.front: the picture of the project's first page, taken as it stands out of the executed lab 20."""

import base64
import sys
from pathlib import Path

import nbformat

LABS = Path(__file__).parent
SOLUTION, PICTURE = LABS / "solutions" / "20_all_reduce.ipynb", LABS / "pictures" / "ring.png"
SHOWS = "Same sum, same wire: the star queues, the ring flows."  # how the words of the figure begin


def taken(solution: Path) -> bytes:
    """Return the PNG of the ring's run. Errors: no figure with those words."""
    cells = nbformat.read(solution, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    found = [output.data["image/png"] for output in outputs if output.data["text/plain"].startswith(SHOWS)]
    if not found:
        raise LookupError(f"{solution.name} has no figure whose words begin with {SHOWS!r}")
    return base64.b64decode(found[0])


def main() -> int:
    """Write the picture and return the exit code."""
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(taken(SOLUTION))
    print(f"{PICTURE.relative_to(LABS.parent)}: {PICTURE.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
