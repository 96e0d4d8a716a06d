"""The book as a reader has it, who lets no script run: nothing is asked for, nothing is cut, wide or narrow."""

from urllib.parse import urlsplit

import pytest

from labs.book.__main__ import pages
from labs.build import LABS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_every_page_is_whole_on_a_screen_and_on_a_telephone(chrome, tmp_path):
    made = pages(LABS)
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    asked = []
    for width in 1280, 400:
        context = chrome.new_context(viewport={"width": width, "height": 900}, java_script_enabled=False)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        for name in made:
            page.goto((tmp_path / name).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width, f"{name} scrolls sideways at {width}"
            seen = page.eval_on_selector_all("img", "all => all.map(one => [one.alt, one.naturalWidth])")
            assert all(alt and wide for alt, wide in seen) and (seen or name == "index.html")
        page.goto((tmp_path / "index.html").as_uri())
        page.locator("h2 a").last.click()
        assert page.locator("h1").count() == 1 and page.url.endswith(f"{max(made.keys() - {'index.html'})}")
        page.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("details[open]").count() == 1
        context.close()
    assert {urlsplit(url).scheme for url in asked} <= {"file", "data"}
