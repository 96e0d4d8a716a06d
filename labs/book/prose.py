"""A lab's Markdown as HTML: headings have names to jump to, labs link to each other's pages, pictures stand inside."""

import base64
import html
import mimetypes
import re
from pathlib import Path

import mistune
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer

from labs.source import BEGIN, END, LabError

LAB = re.compile(r"(?:\./|\.\./|labs/|solutions/)*([\w.-]+)\.ipynb(#.*)?")


def prose(text: str, labs: Path, names: set[str]) -> str:
    """Markdown as HTML. names: the labs that have a page. Errors: a picture that is not in `labs`."""
    return mistune.create_markdown(escape=False, renderer=Page(labs, names), plugins=["table", "strikethrough"])(text)


def python(code: str) -> str:
    """Code with a class a token, and nothing around."""
    return highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))


def solved(code: str) -> str:
    """A cell's code, its magic as it is, its solution set apart by more than colour, the markers gone."""
    magic, rest = re.fullmatch(r"(%%.*\n?)?((?s:.*))", code).groups("")
    text = f'<span class="magic">{html.escape(magic)}</span>' * bool(magic) + python(rest)
    begin, end = (rf"[ ]*<span[^>]*>{marker}</span>\n" for marker in (BEGIN, END))
    return re.sub(rf"{begin}(.*?){end}", r'<span class="solution"><i>one solution</i>\1</span>', text, flags=re.DOTALL)


def printed(text: str) -> str:
    """What a cell printed: sentences wrap, columns do not."""
    aligned = re.search(r"\S {2,}\S|(?m:^\d+: .*\n\d+: )", text)  # a table, or a schedule's grid
    kind = 'printed aligned" tabindex="0' if aligned else "printed"
    return f'<pre class="{kind}">{html.escape(text)}</pre>'


def slug(heading: str) -> str:
    """The name by which one jumps to a heading."""
    return re.sub(r"\W+", "-", re.sub(r"<[^>]*>", "", html.unescape(heading))).strip("-").lower()


class Page(mistune.HTMLRenderer):
    """mistune's HTML, with what a page without a server needs."""

    def __init__(self, labs: Path, names: set[str]) -> None:
        super().__init__(escape=False)
        self.labs, self.names = labs, names

    def heading(self, text: str, level: int, **_: object) -> str:
        return f'<h{level} id="{slug(text)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        lab = LAB.fullmatch(url)
        if lab and lab[1] in self.names:
            return f'<a href="{lab[1]}.html{lab[2] or ""}">{text}</a>'
        if re.match(r"https?://|mailto:|#", url):
            return super().link(text, url, title)
        return text  # a file of the repository: a page that stands alone has it not

    def image(self, text: str, url: str, title: str | None = None) -> str:
        path = self.labs / url
        if not path.is_file():
            raise LabError(f"the picture {url} is not among the labs' files: a page asks no other machine for it")
        kind, content = mimetypes.guess_type(path.name)[0], base64.b64encode(path.read_bytes()).decode()
        return f'<img src="data:{kind};base64,{content}" alt="{html.escape(text, quote=True)}">'

    def block_code(self, code: str, info: str | None = None) -> str:
        inner = python(code) if info == "python" else html.escape(code)
        return f'<pre class="drawing" tabindex="0"><code>{inner}</code></pre>\n'

    def table(self, text: str) -> str:
        return f'<div class="wide" tabindex="0"><table>\n{text}</table></div>\n'
