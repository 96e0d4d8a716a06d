"""Signs come with words, colours only repeat them, and without a notebook the same is text."""

from lt_core.teaching.shown import bad, good, near, number, row, say, undecided


def test_without_a_notebook_it_is_printed(capsys):
    say("✔ values", "<b>✔ values</b>")
    assert capsys.readouterr().out == "✔ values\n"


def test_a_notebook_gets_both(displayed):
    say("✔ values", "<b>✔ values</b>")
    assert displayed[0]["data"] == {"text/plain": "✔ values", "text/html": "<b>✔ values</b>"}


def test_a_chip_is_a_sign_and_a_word():
    for chip in (good("✔", "holds"), bad("✘", "fails"), near("≈", "near"), undecided("–", "open")):
        assert f"{chip.sign} {chip.word}" in chip.html
    assert "a &lt; b" in row(good("✔", "holds"), "a < b")


def test_numbers_as_they_are_read():
    values = (1.75, 110_000, 1_751_715_840, 1.998046875, 0.0260, 3, 3.0, -2.5, "ring")
    assert [number(v) for v in values] == [
        "1.75",
        "110,000",
        "1,751,715,840",
        "1.99805",
        "0.026",
        "3",
        "3",
        "-2.5",
        "ring",
    ]
