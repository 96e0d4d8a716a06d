"""git's textconv for notebooks: sources, and the words of each output (`make notebook-diffs` switches it on)."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    cells = json.load(file)["cells"]
for cell in cells:
    print("---", cell["cell_type"], *cell["metadata"].get("tags", []))
    print("".join(cell["source"]))
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        text = "".join(output.get("text") or data.get("text/plain") or output.get("traceback") or [])
        print("  > " + text.rstrip().replace("\n", "\n  > ") + " [picture]" * ("image/png" in data))
