"""A page at rest: no script, nothing that a browser would fetch, and words for every picture."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

FETCHES = {"src", "srcset", "poster", "data", "background", "action", "formaction"}
REFUSED = {"script", "iframe", "object", "embed", "link", "base", "form"}


def faults(page: str) -> list[str]:
    """What is wrong with a page of HTML, in words."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader.found


class Reader(HTMLParser):
    """Looks at each tag, its attributes, and the text of styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._styles = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._styles = tag == "style"
        self.found += list(faults_of(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self._styles:
            self.found += asked_by_style(data)


def faults_of(tag: str, attributes: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with one tag."""
    if tag in REFUSED:
        yield f"<{tag}> has no place in a page at rest"
    if tag == "img" and not attributes.get("alt", "").strip():
        yield "a picture without alt text"
    for name, value in attributes.items():
        if name in FETCHES and not value.startswith("data:"):
            yield f"<{tag}> asks for {value}"
        if name.startswith("on"):
            yield f"<{tag}> has the script {name}"
        if name == "href" and value.strip().lower().startswith("javascript:"):
            yield f"<{tag}> leads to a script"
        if name == "style":
            yield from asked_by_style(value)


def asked_by_style(style: str) -> list[str]:
    """What a style would fetch."""
    return [f"a style asks for {found}" for found in re.findall(r"@import[^;]*|url\((?!['\"]?data:)[^)]*\)", style)]
