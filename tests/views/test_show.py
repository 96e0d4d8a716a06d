"""One call shows a picture and its words: one display in a notebook, words elsewhere, one file without a network."""

import re

import plotly.graph_objects as go
import pytest

from lt_core.base import UserError
from lt_core.views import Figure, show, to_html
from lt_core.views.show import PLOTLY, bundle, folded


@pytest.fixture
def figure():
    fig = go.Figure(go.Bar(x=[1, 2]), layout={"title": {"text": "Rank 0 &lt; rank 1"}})
    return Figure(fig, "Each rank sends 12,288 bytes & waits <1 ms>.", "It takes 3.1 ms.")


def test_plain_python_prints_the_words(figure, capsys):
    show(figure)
    assert capsys.readouterr().out == "Each rank sends 12,288 bytes & waits <1 ms>. It takes 3.1 ms.\n"


def test_a_notebook_gets_one_display_and_its_words_below(figure, displayed, tmp_path):
    to_html(figure, tmp_path / "before.html")  # a page is set up otherwise, and that does not stay
    show(figure)
    (data, metadata), (below, _) = [(output["data"], output["metadata"]) for output in displayed]
    assert set(data) == {PLOTLY, "text/plain"}
    assert data["text/plain"] == figure.words  # exact facts alone, so that two runs can be compared
    assert data[PLOTLY]["data"][0]["type"] == "bar"
    assert data[PLOTLY]["config"] == {"displaylogo": False}
    assert metadata == {"image/png": {"alt": figure.words, "width": 860}}
    assert set(below) == {"text/html"}
    assert below["text/html"].startswith("<details><summary>In words</summary>")
    assert "12,288 bytes &amp; waits &lt;1 ms&gt;. It takes 3.1 ms." in below["text/html"]


def test_a_figure_at_the_end_of_a_cell_is_shown(figure, displayed):
    figure._ipython_display_()
    assert [list(output["data"]) for output in displayed] == [[PLOTLY, "text/plain"], ["text/html"]]


def test_a_bare_plotly_figure_needs_words(capsys):
    show(go.Figure(), words="A line that rises.")
    assert capsys.readouterr().out == "A line that rises.\n"
    with pytest.raises(UserError, match="a figure without words; expected what it shows"):
        show(go.Figure())


def test_words_given_replace_those_of_the_figure(figure, capsys):
    show(figure, words="Mine.")
    assert capsys.readouterr().out == "Mine.\n"


def test_the_same_figure_gives_the_same_bundle(figure):
    assert bundle(figure) == bundle(Figure(go.Figure(figure.figure), figure.words, "It takes 9 ms."))


def test_html_stands_alone(figure, tmp_path):
    path = to_html([figure, figure], tmp_path / "ring.html")
    page = path.read_text(encoding="utf-8")
    tags = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.S)
    assert not re.search(r"<link|@import|https?://", tags) and not re.search(r"<script[^>]{1,99}src=", page)
    assert page.count("plotly.js v") == 1 and page.count("Plotly.newPlot(") >= 2
    assert page.count(folded(figure, opened=True)) == 2
    assert "<title>Rank 0 &lt; rank 1</title>" in page
    assert page == to_html([figure, figure], tmp_path / "again.html").read_text(encoding="utf-8")


def test_html_says_where_it_could_not_be_written(figure, tmp_path):
    with pytest.raises(UserError, match=r"ring\.html was not written; got No such file or directory; try: another"):
        to_html(figure, tmp_path / "nowhere" / "ring.html")
