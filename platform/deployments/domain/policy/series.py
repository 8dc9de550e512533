"""PromQL label enforcement: limits a query to the series of one service. Pure.

Each selector of a query gets matchers for the service's labels, as in prom-label-proxy. The output is written from the
parsed tokens, so that Prometheus reads exactly what was checked here. The grammar is that of Prometheus (querying:
basics, operators, functions), without durations as numbers and `or` between matchers; anything outside the grammar is
refused.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

_AGGREGATIONS = frozenset(
    {"avg", "bottomk", "count", "count_values", "group", "limit_ratio", "limitk", "max", "min", "quantile", "stddev"}
    | {"stdvar", "sum", "topk"}
)
_WORDS_BETWEEN = frozenset({"and", "or", "unless", "atan2"})
_SIGNS_BETWEEN = frozenset({"+", "-", "*", "/", "%", "^", "==", "!=", "<=", ">=", "<", ">"})
_NO_METRICS = _WORDS_BETWEEN | {"by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset"}
_MATCHES = frozenset({"=", "!=", "=~", "!~"})
_DEEPEST = 50

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_DURATION = r"(?:[0-9]+(?:ms|[smhdwy]))+"
_TOKEN = re.compile(
    r"(?P<text>\"(?:[^\"\\\n]|\\[\\\"'nrt])*\"|'(?:[^'\\\n]|\\[\\\"'nrt])*'|`[^`\r]*`)"
    rf"|(?P<duration>{_DURATION})(?![A-Za-z0-9_.])"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))(?![A-Za-z0-9_.])"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_:]*)"
    r"|(?P<sign>==|!=|=~|!~|<=|>=|[-+*/%^<>=(){}\[\],:@])"
)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\'": "'", "\\n": "\n", "\\r": "\r", "\\t": "\t"}
_ESCAPE = re.compile(r"\\.")


class NotUnderstoodError(ValueError):
    """A query cannot be limited; the message names what was found, and where."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


_END = _Token("end", "its end", -1)


def limited(query: str, labels: Mapping[str, str]) -> str:
    """Return the query with each of its selectors limited to series that have the labels.

    Raises:
        NotUnderstoodError: the query is outside this grammar.
    """
    matchers = [f"{name}={_written(value)}" for name, value in labels.items()]
    return _Parser(list(_tokens(query)), matchers).whole()


def _tokens(query: str) -> list[_Token]:
    found = []
    at = _after_space(query, 0)
    while at < len(query):
        match = _TOKEN.match(query, at)
        if match is None:
            raise NotUnderstoodError(f"has {query[at : at + 20]!r} at character {at + 1}")
        found.append(_Token(match.lastgroup or "", match[0], at))
        at = _after_space(query, match.end())
    return found


def _after_space(query: str, at: int) -> int:
    match = _SPACE.match(query, at)
    return match.end() if match else at


def _written(value: str) -> str:
    """Return a text as a PromQL string; its escapes are those of JSON as far as they are used here."""
    return json.dumps(value, ensure_ascii=False)


def _read(text: str) -> str:
    """Return the value of a quoted string."""
    if text[0] == "`":
        return text[1:-1]
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0]], text[1:-1])


class _Parser:
    """Parses a query from its first token to its last and writes it, selector by selector."""

    def __init__(self, tokens: list[_Token], matchers: list[str]) -> None:
        self._tokens = tokens
        self._matchers = matchers
        self._next = 0
        self._depth = 0
        self._out: list[str] = []

    def whole(self) -> str:
        self._expression()
        if self._peek() is not _END:
            self._refuse("an operator or the end")
        return " ".join(self._out)

    def _expression(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotUnderstoodError(f"is nested more than {_DEEPEST} levels deep")
        self._operand()
        while self._between():
            self._operand()
        self._depth -= 1

    def _between(self) -> bool:
        """Take a binary operator with its modifiers; return whether there was one."""
        if not self._is_sign(*_SIGNS_BETWEEN) and not self._is_word(*_WORDS_BETWEEN):
            return False
        self._take()
        if self._is_word("bool"):
            self._take()
        if self._is_word("on", "ignoring"):
            self._take()
            self._names()
            if self._is_word("group_left", "group_right"):
                self._take()
                if self._is_sign("("):
                    self._names()
        return True

    def _operand(self) -> None:
        while self._is_sign("+", "-"):
            self._take()
        token = self._peek()
        if token.kind == "number" or self._is_word("inf", "nan"):
            self._take()
        elif token.kind == "text":
            self._out.append(_written(self._text()))
        elif self._is_sign("("):
            self._take()
            self._expression()
            self._expect(")")
        elif self._is_sign("{"):
            self._selector()
        elif token.kind == "word" and token.text.lower() not in _NO_METRICS:
            self._named()
        else:
            self._refuse("a number, a metric or a function")
        self._modifiers()

    def _named(self) -> None:
        """Take a function call, an aggregation or a metric, which begin with a name."""
        following = self._peek(1)
        groups = following.kind == "word" and following.text.lower() in ("by", "without")
        if groups and self._is_word(*_AGGREGATIONS):
            self._take()
            self._take()
            self._names()
            self._arguments()
        elif following.kind == "sign" and following.text == "(":
            is_aggregation = self._is_word(*_AGGREGATIONS)
            self._take()
            self._arguments()
            if is_aggregation and self._is_word("by", "without"):
                self._take()
                self._names()
        else:
            self._take()
            self._selector()

    def _arguments(self) -> None:
        self._expect("(")
        if not self._is_sign(")"):
            self._expression()
            while self._is_sign(","):
                self._take()
                self._expression()
        self._expect(")")

    def _names(self) -> None:
        """Take a list of labels."""
        self._expect("(")
        while not self._is_sign(")"):
            self._label()
            if not self._is_sign(")"):
                self._expect(",")
        self._expect(")")

    def _label(self) -> None:
        token = self._peek()
        if token.kind == "text":
            self._out.append(_written(self._text()))
        elif token.kind == "word" and ":" not in token.text:
            self._take()
        else:
            self._refuse("a label")

    def _selector(self) -> None:
        """Take matchers in braces, if any, and write them with those of the service."""
        written = list(self._matchers)
        if self._is_sign("{"):
            self._advance()
            while not self._is_sign("}"):
                written.append(self._matcher())
                if not self._is_sign("}"):
                    self._skip(",")
            self._advance()
        self._out.append("{" + ",".join(written) + "}")

    def _matcher(self) -> str:
        token = self._peek()
        if token.kind == "text":
            name = _written(self._text())
            if self._is_sign(",", "}"):
                return name  # the metric's own name, where it has characters that names usually lack
        elif token.kind == "word" and ":" not in token.text:
            name = self._advance().text
        else:
            self._refuse("a label")
        if not self._is_sign(*_MATCHES):
            self._refuse("=, !=, =~ or !~")
        sign = self._advance().text
        if self._peek().kind != "text":
            self._refuse("a text in quotes")
        return f"{name}{sign}{_written(self._text())}"

    def _modifiers(self) -> None:
        while True:
            if self._is_sign("["):
                self._advance()
                written = self._duration()
                if self._is_sign(":"):
                    self._advance()
                    written += ":" + ("" if self._is_sign("]") else self._duration())
                self._skip("]")
                self._out.append(f"[{written}]")
            elif self._is_word("offset"):
                self._take()
                minus = self._is_sign("-")
                if minus:
                    self._advance()
                self._out.append(("-" if minus else "") + self._duration())
            elif self._is_sign("@"):
                self._at()
            else:
                return

    def _at(self) -> None:
        self._take()
        if self._is_word("start", "end"):
            self._take()
            self._expect("(")
            self._expect(")")
            return
        if self._is_sign("+", "-"):
            self._take()
        if self._peek().kind != "number":
            self._refuse("a time")
        self._take()

    def _duration(self) -> str:
        if self._peek().kind != "duration":
            self._refuse("a duration such as 5m")
        return self._advance().text

    def _text(self) -> str:
        return _read(self._advance().text)

    def _peek(self, ahead: int = 0) -> _Token:
        at = self._next + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def _is_sign(self, *signs: str) -> bool:
        token = self._peek()
        return token.kind == "sign" and token.text in signs

    def _is_word(self, *words: str) -> bool:
        token = self._peek()
        return token.kind == "word" and token.text.lower() in words

    def _advance(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _take(self) -> None:
        """Write the next token unchanged."""
        self._out.append(self._advance().text)

    def _skip(self, sign: str) -> None:
        if not self._is_sign(sign):
            self._refuse(repr(sign))
        self._advance()

    def _expect(self, sign: str) -> None:
        self._skip(sign)
        self._out.append(sign)

    def _refuse(self, expected: str) -> NoReturn:
        token = self._peek()
        found = token.text if token is _END else f"{token.text[:20]!r} at character {token.at + 1}"
        raise NotUnderstoodError(f"has {found}, where {expected} was expected")
