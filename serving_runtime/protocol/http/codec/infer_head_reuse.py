"""Cache of infer request heads, and of the heads of their answers, per infer path.

A client that sends the same shapes again sends the same bytes again, but for the request's id, which clients write
first. So a head without data is kept for its infer path, without an id at its beginning, with the JSON of its answers.
"""

from typing import NamedTuple

from serving_runtime.protocol.http.codec.infer_head import InferHead, parse
from serving_runtime.protocol.http.codec.response_head import AnswerForm

_KEPT_BYTES = 1024
_KEPT_HEADS = 256
_LONGEST_BYTES = 2 * _KEPT_BYTES
"""Limit of a text that may be a kept head with an id; longer ones contain data, and a lookup would read them."""

_ID_FIRST = (b'{"id":"', b'{"id": "')


class KeptHead(NamedTuple):
    """A checked head with the form of its answers."""

    head: InferHead
    answer: AnswerForm


class HeadCache:
    """Heads by their text, bounded in number and in size."""

    def __init__(self) -> None:
        self._heads: dict[bytes, KeptHead] = {}

    def head(self, text: bytes) -> tuple[InferHead, str, AnswerForm]:
        """Return the checked head, the request's id, empty without one, and the form of its answers.

        Raises InvalidArgument.
        """
        if len(text) > _LONGEST_BYTES:
            head = parse(text)
            return head, head.id, AnswerForm(head.forms)
        known = self._heads.get(text)
        if known is not None:
            return known.head, "", known.answer
        first_id, rest = without_id(text)
        known = self._heads.get(rest) if first_id else None
        if known is not None:
            return known.head, first_id, known.answer
        head = parse(rest)
        answer = AnswerForm(head.forms)
        if len(rest) <= _KEPT_BYTES and not head.id and _all_binary(head):
            if len(self._heads) >= _KEPT_HEADS:
                self._heads.clear()
            answer = AnswerForm(head.forms, {})
            self._heads[rest] = KeptHead(head, answer)
        return head, head.id or first_id, answer  # the last of several members of one name counts


def _all_binary(head: InferHead) -> bool:
    return all(item.size is not None for item in head.inputs)


def without_id(text: bytes) -> tuple[str, bytes]:
    """Return an id that is the first of several members of a JSON object, and the object without it.

    Returns no id and the unchanged text where it is absent, or not as plain as ids are.
    """
    if not text.startswith(_ID_FIRST):
        return "", text
    start = text.index(b'"', 5) + 1
    end = text.find(b'"', start)
    found = text[start:end]
    plain = end > start and b"\\" not in found and found.isascii() and text[end + 1 : end + 2] == b","
    if not plain or not (name := found.decode("ascii")).isprintable():
        return "", text
    return name, b"{" + text[end + 2 :]
