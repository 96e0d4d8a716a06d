"""The tour: the cells of all labs that are tagged `tour`, as one notebook that runs to the end by itself.

src/tour.py opens and closes it; each lab gives its imports and its tagged cells, its headings one level down.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbformat import NotebookNode, from_dict

from labs.source import KERNEL, digest, read


def tour(frame: Path, labs: Sequence[Path]) -> NotebookNode:
    """Return the tour of these labs' sources between the first cell of `frame` and its others, nothing executed."""
    first, *last = read(frame).cells
    cells = [first, *(cell for source in labs for cell in chosen(read(source))), *last]
    seen: Counter[str] = Counter()
    for cell in cells:
        name = digest(cell.source)[:8]
        cell.id = f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1
    stamp = {"source": digest("\n".join(cell.source for cell in cells))}
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}, "lt_lab": stamp}
    return from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def chosen(book: NotebookNode) -> Iterator[NotebookNode]:
    """Yield the cells that a lab gives: its first code cell, which imports, and those tagged `tour`."""
    imports = next(cell for cell in book.cells if cell.cell_type == "code")
    cells = [cell for cell in book.cells if cell is imports or "tour" in cell.metadata.get("tags", [])]
    for cell in cells if len(cells) > 1 else []:
        if cell.cell_type == "markdown":
            cell.source = lowered(cell.source)
        yield cell


def lowered(text: str) -> str:
    """Return Markdown with each heading one level further down; what stands in a fence is no heading."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else re.sub(r"^(#+ )", r"#\1", part, flags=re.M) for part in parts)
