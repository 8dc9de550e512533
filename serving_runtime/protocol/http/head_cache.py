"""The heads that one infer path was sent before.

A client that sends the same shapes again sends the same bytes again, so a head that holds neither data nor an id is
kept with the model it was sent to, and with it the JSON of the answers it got.
"""

from serving_runtime.protocol.http.infer_head import InferHead, parse

_KEPT_BYTES = 1024
_KEPT_HEADS = 256


class HeadCache:
    """Heads by their text, bounded in number and in size."""

    def __init__(self) -> None:
        self._heads: dict[bytes, InferHead] = {}

    def head(self, text: bytes) -> InferHead:
        """Return the checked head; raises InvalidArgument."""
        head = self._heads.get(text)
        if head is None:
            head = parse(text)
            if len(text) <= _KEPT_BYTES and not head.id and all(item.size is not None for item in head.inputs):
                if len(self._heads) >= _KEPT_HEADS:
                    self._heads.clear()
                head.answers = {}
                self._heads[text] = head
        return head
