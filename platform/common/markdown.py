"""Markdown renderer for user content: CommonMark with tables, without anything that could run or load.

HTML in it is shown as text. Links lead only to whole http, https and mailto addresses; images become links, since a
page may load nothing from elsewhere. Headings begin at the third level, below those of the page.
"""

from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

_SCHEMES = ("http", "https", "mailto")
_FIRST_LEVEL, _LAST_LEVEL = 3, 6


def is_link(address: str) -> bool:
    """Return whether a page may link to the address."""
    try:
        return urlsplit(address).scheme in _SCHEMES
    except ValueError:
        return False


def render(text: str) -> str:
    """Return the HTML of Markdown."""
    html: str = _MARKDOWN.render(text)
    return html


def _link_open(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    tokens[index].attrSet("rel", "nofollow noopener noreferrer")
    return self.renderToken(tokens, index, options, env)


def _image(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    image = tokens[index]
    link = Token("link_open", "a", 1, attrs={"href": image.attrs["src"], "rel": "nofollow noopener noreferrer"})
    text = self.renderInlineAsText(image.children, options, env) or "image"
    if sum(token.nesting for token in tokens[:index] if token.type.startswith("link_")):
        return escapeHtml(text)  # already the text of a link
    return f"{self.renderToken([link], 0, options, env)}{escapeHtml(text)}</a>"


def _heading(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    heading = tokens[index]
    level = min(int(heading.tag[1]) + _FIRST_LEVEL - 1, _LAST_LEVEL)
    return self.renderToken([heading.copy(tag=f"h{level}")], 0, options, env)


def _made() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    made.validateLink = is_link  # type: ignore[method-assign, assignment]
    rules = {"link_open": _link_open, "image": _image, "heading_open": _heading, "heading_close": _heading}
    for name, rule in rules.items():
        made.add_render_rule(name, rule)
    return made


_MARKDOWN = _made()
