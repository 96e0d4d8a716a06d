"""python -m labs.book [DIR]: write the pages of all solution notebooks, and a list of them, to book/ or to DIR."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat
from jinja2 import Environment
from nbconvert import TemplateExporter
from nbformat import NotebookNode

from labs.book.prose import printed, prose, slug, solved
from labs.book.still import faults
from labs.build import LABS
from labs.source import LabError

TEMPLATE = Path(__file__).with_name("template")


class Lab(NamedTuple):
    """A lab's page: its name, its title, its question and its facts as Markdown, its parts, and the notebook."""

    name: str
    title: str
    question: str
    facts: str
    parts: tuple[str, ...]
    book: NotebookNode


def main(arguments: list[str]) -> int:
    """Write all pages and return the exit code; none is written if one has a fault."""
    folder = Path(arguments[0]) if arguments else LABS.parent / "book"
    try:
        made = pages(LABS)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in made.items():
        (folder / name).write_text(page, encoding="utf-8")
    kilobytes = sum(len(page.encode()) for page in made.values()) / 1000
    print(f"{len(made)} pages, {kilobytes:,.0f} kB: open {folder / 'index.html'}")
    return 0


def pages(labs: Path) -> dict[str, str]:
    """Return each page of HTML by its file's name. Errors: there is no lab, or a page has a fault."""
    found = [lab(path) for path in sorted((labs / "solutions").glob("*.ipynb"))]
    if not found:
        raise LabError(f"there is no solution in {labs / 'solutions'}: make labs")
    names = {one.name for one in found}
    made = {"index.html": listed(found, labs, names)}
    for number, one in enumerate(found):
        near = {"before": found[number - 1] if number else None, "after": dict(enumerate(found)).get(number + 1)}
        made[f"{one.name}.html"] = page(one, labs, names, near)
    wrong = [f"{name}: {fault}" for name, text in made.items() for fault in faults(text)]
    if wrong:
        raise LabError("\n".join(wrong))
    return made


def lab(path: Path) -> Lab:
    """Read what a page and the list say of a solution notebook. Errors: it does not begin with its title."""
    book = nbformat.read(path, as_version=4)
    first = book.cells[0].source if book.cells else ""
    title, _, rest = first.partition("\n")
    if not title.startswith("# "):
        raise LabError(f"{path.name} does not begin with its title, '# NN - Name: the promise'")
    paragraphs = [text.strip() for text in re.split(r"\n\s*\n", rest) if text.strip()]
    facts = next((text for text in paragraphs if text.startswith("*Builds")), "")
    question = "\n\n".join(paragraphs[: paragraphs.index(facts)] if facts else paragraphs)
    prose_cells = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    parts = tuple(re.findall(r"^## (.+)$", prose_cells, re.M))
    return Lab(path.stem, title.removeprefix("# ").strip(), question, facts, parts, book)


def page(one: Lab, labs: Path, names: set[str], near: dict[str, Lab | None]) -> str:
    """Return a lab's page."""
    exporter = TemplateExporter(  # not the one for HTML, which writes "no description" where alt text is missing
        template_name=TEMPLATE.name, extra_template_basedirs=[str(TEMPLATE.parent)], template_file="index.html.j2",
        filters=filters(labs, names),
    )  # fmt: skip
    resources = {"lab": one, **near, "style": style()}
    text, _ = exporter.from_notebook_node(one.book, resources=resources)
    return text


def listed(found: list[Lab], labs: Path, names: set[str]) -> str:
    """Return the list of labs."""
    environment = Environment(autoescape=False)
    environment.filters |= filters(labs, names)
    source = (TEMPLATE / "list.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source).render(labs=found, style=style())


def filters(labs: Path, names: set[str]) -> dict:
    """Return what both templates call to write HTML."""
    return {"prose": lambda text: prose(text, labs, names), "solved": solved, "printed": printed, "slug": slug}


def style() -> str:
    return (TEMPLATE / "style.css").read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
