"""The pages of the book ask for nothing, run nothing, keep every picture's words, and lead from lab to lab."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from labs.book.__main__ import main, pages
from labs.book.prose import printed, prose, solved
from labs.book.still import faults
from labs.build import LABS
from labs.source import LabError

FIRST = """# {name} - A lab: with a promise

Who *waits*?

*Builds on nothing. Takes 5 minutes.*

And more."""
SOLVED = (
    'def total(parts):\n    """The sum."""\n    ### BEGIN SOLUTION\n    return sum(parts) < 3\n    ### END SOLUTION'
)
DOT, BOTH = "![a dot](pictures/dot.png)", {"text/html": "<b>so</b>", "text/plain": "so"}


@pytest.fixture
def labs(tmp_path):
    """Two labs, the second of which has one of everything."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "dot.png").write_bytes(b"PNG")
    write(tmp_path, "05", [])
    figure = new_output(
        "display_data",
        data={"image/png": "iVBO\nRw0K\n", "text/plain": "2 bars"},
        metadata={"image/png": {"alt": 'two "bars"', "width": 860}},
    )
    write(
        tmp_path,
        "06",
        [
            new_markdown_cell(f"## Run it: & see\n\n[before](05_lab.ipynb) [file](../x.py) {DOT}"),
            new_code_cell(SOLVED, outputs=[new_output("stream", name="stdout", text="a < b\n"), figure]),
            new_code_cell("1 / 0", outputs=[new_output("error", ename="E", evalue="no", traceback=["E: <no>"])]),
            new_code_cell("%%torchrun --in x\nx", outputs=[new_output("execute_result", data={"text/plain": "<3>"})]),
            new_code_cell("x", outputs=[new_output("display_data", data=BOTH)]),
            new_markdown_cell("## Yours\n\n```\n0 --> 1\n```", metadata={"tags": ["teacher"]}),
        ],
    )  # fmt: skip
    return tmp_path


def write(labs, number, cells):
    first = new_markdown_cell(FIRST.format(name=number), metadata={"tags": ["question"]})
    nbformat.write(new_notebook(cells=[first, *cells]), labs / "solutions" / f"{number}_lab.ipynb")


def test_a_page_a_lab_and_a_list(labs, tmp_path, capsys):
    made = pages(labs)
    assert made == pages(labs) and list(made) == ["index.html", "05_lab.html", "06_lab.html"]
    assert '<a href="05_lab.html">05 - A lab: with a promise</a>' in made["index.html"]
    assert "Who <em>waits</em>?" in made["index.html"] and "Takes 5 minutes." in made["index.html"]
    assert "And more." not in made["index.html"] and "And more." in made["05_lab.html"]
    assert 'href="06_lab.html" rel="next"' in made["05_lab.html"] and 'rel="prev"' not in made["05_lab.html"]
    assert 'href="05_lab.html" rel="prev"' in made["06_lab.html"] and 'rel="next"' not in made["06_lab.html"]


def test_everything_that_a_notebook_shows_is_on_its_page(labs):
    page = pages(labs)["06_lab.html"]
    assert page.count("<h1") == 1 and '<h2 id="run-it-see">Run it: &amp; see</h2>' in page
    assert '<a href="#run-it-see">Run it: &amp; see</a>' in page
    assert '<a href="05_lab.html">before</a> file <img src="data:image/png;base64,UE5H" alt="a dot">' in page
    assert '<img src="data:image/png;base64,iVBORw0K" alt="two &#34;bars&#34;" width="860">' in page
    assert '<pre class="printed">a &lt; b\n</pre>' in page and '<pre class="printed">&lt;3&gt;</pre>' in page
    assert '<span class="magic">%%torchrun --in x\n</span><span class="n">x</span>' in page
    assert "<b>raised on purpose:</b> E: &lt;no&gt;</pre>" in page
    assert '<div class="shown"><b>so</b></div>' in page and "2 bars" not in page
    assert '<section class="teacher">' in page and "0 --&gt; 1" in page


def test_a_solution_is_set_apart_and_its_markers_are_gone():
    code = solved(SOLVED)
    plain = re.sub(r"<[^>]*>", "", code)
    assert "SOLUTION" not in code and plain.count("one solution") == 1
    assert (
        plain.replace("one solution", "").split() == 'def total(parts): """The sum.""" return sum(parts) &lt; 3'.split()
    )


@pytest.mark.parametrize(
    ("text", "scrolls"),
    [
        ("one sentence, however long it is. " * 9, False),
        ("rank   bytes\n   0  24,576", True),
        ("0: 0SEND0>1+2ADD0<2 2SEND1>1\n1: 1SEND0>2+0ADD0<0 0SEND1>2", True),
        ("1: only one line", False),
    ],
)
def test_columns_stay_and_sentences_wrap(text, scrolls):
    assert ("aligned" in printed(text)) == scrolls


@pytest.mark.parametrize("url", ["nowhere.png", "https://example.org/x.png"])
def test_a_picture_from_elsewhere_is_refused(labs, url):
    with pytest.raises(LabError, match="is not among the labs' files"):
        prose(f"![x]({url})", labs, set())


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<script>x</script>", "<script> has no place"),
        ("<script src='https://x.org/a.js'></script>", "<script> asks for https://x.org/a.js"),
        ("<link rel='stylesheet' href='a.css'>", "<link> has no place"),
        ("<iframe src='data:,x'></iframe>", "<iframe> has no place"),
        ("<img src='a.png' alt='x'>", "<img> asks for a.png"),
        ("<img src='data:,x'>", "a picture without alt text"),
        ("<img src='data:,x' alt=' '>", "a picture without alt text"),
        ("<b onclick='x()'>x</b>", "<b> has the script onclick"),
        ("<a href=' JavaScript:x()'>x</a>", "<a> leads to a script"),
        ("<b style='background: url(https://x.org)'>x</b>", "a style asks for url(https://x.org)"),
        ("<style>@import 'a.css';</style>", "a style asks for @import 'a.css'"),
    ],
)
def test_a_page_that_asks_for_something_is_told(html, fault):
    assert any(found.startswith(fault) for found in faults(html))


def test_a_page_at_rest_has_no_fault():
    assert faults("<style>a { b: url(data:,x) }</style><a href='https://x.org'>x</a><img alt='a' src='data:,x'>") == []


def test_a_book_with_a_fault_is_not_written(labs, tmp_path, monkeypatch, capsys):
    html = new_output("display_data", data={"text/html": "<script>x</script>"})
    write(labs, "07", [new_code_cell("x", outputs=[html])])
    monkeypatch.setattr("labs.book.__main__.LABS", labs)
    assert main([str(tmp_path / "book")]) == 1
    assert capsys.readouterr().err == "07_lab.html: <script> has no place in a page at rest\n"
    assert not (tmp_path / "book").exists()


@pytest.mark.parametrize("first", ["words", "## 05 - too deep", ""])
def test_a_lab_without_its_title_is_told(labs, first):
    nbformat.write(new_notebook(cells=[new_markdown_cell(first)]), labs / "solutions" / "05_lab.ipynb")
    with pytest.raises(LabError, match=r"05_lab\.ipynb does not begin with its title"):
        pages(labs)


def test_without_labs_there_is_no_book(tmp_path):
    with pytest.raises(LabError, match="make labs"):
        pages(tmp_path)


def test_the_committed_labs_make_a_book():
    made = pages(LABS)
    assert len(made) == 1 + len(list((LABS / "solutions").glob("*.ipynb")))
    for name, page in made.items():
        there = set(re.findall(r'href="([\w.-]+\.html)', page))
        assert there <= set(made), f"{name} leads nowhere"
        jumps, names = set(re.findall(r'href="#([^"]+)"', page)), set(re.findall(r'id="([^"]+)"', page))
        assert jumps <= names, f"{name} jumps nowhere"
