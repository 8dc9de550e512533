"""What a page says, found by `data-testid`: the words are the templates' own, and `tests/copy.txt` has them."""

from html.parser import HTMLParser

_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)


class Marked(HTMLParser):
    """Collects the text of each element that has a test id, spaces joined.

    Attributes:
        found: test ids with texts, in the order of the elements' ends.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open: list[tuple[str, str, list[str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("data-testid") or ""
        if tag in _VOID:
            self.found += [(name, "")] if name else []
        else:
            self._open.append((tag, name, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if all(each != tag for each, _, _ in self._open):
            return
        while True:
            closed, name, texts = self._open.pop()
            if name:
                self.found.append((name, " ".join("".join(texts).split())))
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        for _, _, texts in self._open:
            texts.append(data)


def marked(html: str, name: str) -> list[str]:
    """Return the texts of the elements of a page that have a test id."""
    return [text for each, text in Marked(html).found if each == name]
