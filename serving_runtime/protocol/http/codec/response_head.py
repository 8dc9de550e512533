"""Form of a request's answers, and reused response heads.

The head of an answer with only binary outputs of a fixed size is made once and sent many times.
"""

from typing import Any, NamedTuple

import orjson

from serving_runtime.protocol import rows
from serving_runtime.protocol.http.codec.infer_head import OutputForms
from serving_runtime.protocol.http.wire.message import Response

HEADERS = b"Content-Type: application/octet-stream\r\nInference-Header-Content-Length: %d\r\n" + rows.HEADER_LINE
"""With the length of the JSON, and the rows."""

_AFTER_ID = b'"outputs":'
"""The text after the id; it occurs in no JSON string, where its quotes would be escaped."""


class AnswerHead(NamedTuple):
    """The JSON of an answer without an id, and the id's position.

    Attributes:
        headers: of an answer without an id.
        id_at: offset in `text`.
        binary_length: of the tensors that follow, in bytes.
        rows: of each request with this answer.
    """

    headers: bytes
    text: bytes
    id_at: int
    binary_length: int
    rows: int

    @classmethod
    def of(cls, text: bytes, binary_length: int, rows: int) -> "AnswerHead":
        return cls(HEADERS % (len(text), rows), text, text.index(_AFTER_ID), binary_length, rows)

    def response(self, request_id: str, tensors: list[Any]) -> Response:
        """Return the whole answer."""
        text = self.text
        if not request_id:
            return Response(200, self.headers, (text, *tensors), len(text) + self.binary_length)
        text = b'%s"id":%s,%s' % (text[: self.id_at], orjson.dumps(request_id), text[self.id_at :])
        return Response(200, HEADERS % (len(text), self.rows), (text, *tensors), len(text) + self.binary_length)


class AnswerForm(NamedTuple):
    """Form of the answers to one request, or to all with the same head.

    Attributes:
        outputs: requested forms of the outputs.
        heads: those of earlier answers by model version and output shapes; None where no request has this head again.
    """

    outputs: OutputForms
    heads: dict[tuple[object, ...], AnswerHead] | None = None
