"""Incremental JSON parser for large texts: works in pieces, so that no call keeps the GIL for long.

A parser in C keeps the GIL from the first byte to the last. Here a text is cut at commas, and each piece becomes a text
of its own: before it the arrays and objects around it are opened again, after it they are closed. Its values are
appended to those of the pieces before, in the same arrays and objects.

    {"a": [[1, 2], [3, 4]]}      ->      {"a": [[1, 2], [3 ]]}  and  {"<here>": [[ 4]]}
"""

import uuid
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import numpy as np
import orjson

PIECE_BYTES = 256 * 1024

_HERE = uuid.uuid4().hex
"""The key of the continued value, in a reopened object. No client knows it."""

_AGAIN = {ord("["): b"[", ord("{"): b'{"%s":' % _HERE.encode()}
_CLOSING = {ord("["): b"]", ord("{"): b"}"}
_QUOTE, _COMMA, _CASE = np.uint8(ord('"')), np.uint8(ord(",")), np.uint8(ord("{") - ord("["))
_OPENS, _CLOSES = np.uint8(ord("{")), np.uint8(ord("}"))
_DEEPEST = 1000
"""Limit of the nesting of arrays and objects; orjson itself accepts little more."""


class MalformedError(ValueError):
    """The text is not JSON; the message says why."""


def loads(text: bytes | memoryview) -> Any:
    """Return the value of a text; raises MalformedError."""
    text = bytes(text)
    whole = _Whole(text)
    start = 0
    for cut, stack in _cuts(text):
        whole.add(start, cut, stack)
        start = cut + 1
    whole.add(start, len(text), [])
    return whole.found


class _Whole:
    """The value of the pieces so far.

    Attributes:
        found: the whole value.
    """

    def __init__(self, text: bytes) -> None:
        self.found: Any = None
        self._text = text
        self._stack: list[int] = []  # where the arrays and objects around the next piece begin
        self._spine: list[Any] = []  # the arrays and objects themselves

    def add(self, start: int, cut: int, stack: list[int]) -> None:
        """Parse the piece from `start` to `cut`, inside the arrays and objects that begin at `stack`."""
        text, before = self._text, self._stack
        content = text[start:cut].strip()
        if before and content[:1] in (b"", b"]", b"}"):
            raise MalformedError("a comma has nothing behind it")
        if stack and content[-1:] in (b"[", b"{"):
            raise MalformedError("a comma has nothing before it")
        again = b"".join([_AGAIN[text[at]] for at in before[:-1]])
        innermost = text[before[-1] : before[-1] + 1] if before else b""
        closing = b"".join([_CLOSING[text[at]] for at in reversed(stack)])
        try:
            part = orjson.loads(b"".join((again, innermost, content, closing)))
        except orjson.JSONDecodeError as error:
            raise MalformedError(f"{error.msg}, between its bytes {start} and {cut}") from error
        if before:
            self._join(part)
        else:
            self.found = part
        self._open(stack)

    def _join(self, part: Any) -> None:
        """Append a piece's values to the value so far."""
        last = self._spine[-1]
        for container in self._spine:
            rest = part
            if container is not last:
                part = rest.pop(_HERE) if type(rest) is dict else rest.pop(0)
            if type(container) is dict:
                container.update(rest)
            else:
                container.extend(rest)

    def _open(self, stack: list[int]) -> None:
        """Record which arrays and objects are open now."""
        same = list(takewhile(lambda pair: pair[0] == pair[1], zip(self._stack, stack, strict=False)))
        spine = self._spine = self._spine[: len(same)]
        for at in stack[len(same) :]:
            if not spine:
                spine.append(self.found)
            else:
                spine.append(spine[-1][_key(self._text, at) if type(spine[-1]) is dict else -1])
        self._stack = stack


def _key(text: bytes, value: int) -> Any:
    """Return the key of the value that begins there, in a parsed text."""
    end = text.rindex(b'"', 0, value)
    begin = end
    while True:
        begin = text.rindex(b'"', 0, begin)
        unescaped = begin
        while text[unescaped - 1 : unescaped] == b"\\":
            unescaped -= 1
        if (begin - unescaped) % 2 == 0:
            return orjson.loads(text[begin : end + 1])


def _cuts(text: bytes) -> Iterator[tuple[int, list[int]]]:
    """Yield commas to cut at, each with the beginnings of the arrays and objects around it."""
    stack: list[int] = []
    inside, escaped = np.False_, False
    for at in range(0, len(text), PIECE_BYTES):
        chunk = text[at : at + PIECE_BYTES]
        if escaped:
            chunk = b"_" + chunk[1:]
        escaped = False
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"__")
            escaped = chunk.endswith(b"\\")
            chunk = chunk.replace(b'\\"', b"__")
        found = np.frombuffer(chunk, np.uint8)
        within = np.logical_xor.accumulate(found == _QUOTE) ^ inside
        inside = within[-1]
        found = np.where(within, np.uint8(0), found)
        commas = np.flatnonzero(found == _COMMA)
        comma = int(commas[-1]) if len(commas) else -1
        cased = found | _CASE
        brackets = np.flatnonzero((cased == _OPENS) | (cased == _CLOSES))
        opens = (cased[brackets] == _OPENS).tolist()
        behind = int(np.searchsorted(brackets, comma))
        places = brackets.tolist()
        _follow(stack, at, places[:behind], opens[:behind])
        if comma >= 0 and stack:
            yield at + comma, list(stack)
        _follow(stack, at, places[behind:], opens[behind:])


def _follow(stack: list[int], at: int, brackets: list[int], opens: list[bool]) -> None:
    """Update the stack by brackets, whose offsets are relative to `at`."""
    for bracket, is_open in zip(brackets, opens, strict=True):
        if is_open:
            stack.append(at + bracket)
            if len(stack) > _DEEPEST:
                raise MalformedError(f"arrays and objects lie in each other more than {_DEEPEST} times")
        elif stack:
            stack.pop()
        else:
            raise MalformedError("an array or object ends that did not begin")
