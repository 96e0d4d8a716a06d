"""python -m labs.front: the pictures of the project's first page, both of a real run.

ring.png       as it stands in the executed lab 20
stepper.png    a screenshot of lab 20 in JupyterLab; `python -m labs.front ring` leaves it as it is
"""

import base64
import sys
from pathlib import Path

import nbformat

LABS = Path(__file__).parent
SOLUTION = LABS / "solutions" / "20_all_reduce.ipynb"
RING, STEPPER = LABS / "pictures" / "ring.png", LABS / "pictures" / "stepper.png"
SHOWS = "Same sum, same wire: the star queues, the ring flows."  # how the words of the figure begin


def taken(solution: Path) -> bytes:
    """Return the PNG of the ring's run. Errors: no figure with those words."""
    cells = nbformat.read(solution, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
    found = [output.data["image/png"] for output in outputs if output.data["text/plain"].startswith(SHOWS)]
    if not found:
        raise LookupError(f"{solution.name} has no figure whose words begin with {SHOWS!r}")
    return base64.b64decode(found[0])


def main(arguments: list[str]) -> int:
    """Write the pictures and return the exit code."""
    RING.parent.mkdir(exist_ok=True)
    RING.write_bytes(taken(SOLUTION))
    if arguments != ["ring"]:
        from labs.shot import stepper  # which needs a browser

        STEPPER.write_bytes(stepper())
    for picture in (RING, STEPPER):
        print(f"{picture.relative_to(LABS.parent)}: {picture.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
