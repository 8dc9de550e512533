"""Paths: what a request is for. Pure.

Health is answered here, inference is counted and limited, explanations go to the explainer, and all else is only
forwarded.
"""

import enum
from urllib.parse import unquote_to_bytes

_V2_CALLS = frozenset({b"infer", b"infer_stream", b"generate", b"generate_stream"})
_V1_CALLS = frozenset({b"predict", b"explain"})


class Purpose(enum.Enum):
    """What to do with a request."""

    LIVE = enum.auto()
    READY = enum.auto()
    INFERENCE = enum.auto()
    EXPLANATION = enum.auto()
    OTHER = enum.auto()


class Paths:
    """Purposes of the paths of one model.

    Args:
        has_explainer: a server of their own gets explain requests. Their paths are compared as a whole, as the
            gateway's on Kubernetes are.
    """

    def __init__(self, model_name: str, *, has_explainer: bool = False) -> None:
        self._model = model_name.encode()
        self._explains: tuple[bytes, ...] = ()
        if has_explainer:
            self._explains = (b"/v1/models/%b:explain" % self._model, b"/v2/models/%b/explain" % self._model)

    def purpose(self, method: bytes, target: bytes) -> Purpose:
        """Return the purpose of a request; `target` is in origin form, with its query."""
        path = target.partition(b"?")[0]
        if method == b"POST":
            return self._of_post(path)
        path = _unescaped(path)
        if method not in (b"GET", b"HEAD"):
            return Purpose.OTHER
        match path.removeprefix(b"/").split(b"/"):
            case [b"v2", b"health", b"live"]:
                return Purpose.LIVE
            case [b"v2", b"health", b"ready"]:
                return Purpose.READY
            case [b"v2", b"models", model, b"ready"] | [b"v2", b"models", model, b"versions", _, b"ready"]:
                return Purpose.READY if model == self._model else Purpose.OTHER
        return Purpose.OTHER

    def _of_post(self, path: bytes) -> Purpose:
        if path in self._explains:
            return Purpose.EXPLANATION
        return Purpose.INFERENCE if self._infers(_unescaped(path)) else Purpose.OTHER

    def _infers(self, path: bytes) -> bool:
        match path.removeprefix(b"/").split(b"/"):
            case [b"v2", b"models", model, call] | [b"v2", b"models", model, b"versions", _, call]:
                return model == self._model and call in _V2_CALLS
            case [b"v1", b"models", called] | [b"v1", b"models", called, b""]:
                model, _, call = called.rpartition(b":")
                return model == self._model and call in _V1_CALLS
        return False


def _unescaped(path: bytes) -> bytes:
    """Return a path as the container reads it: an escape must not hide a request."""
    return unquote_to_bytes(path) if b"%" in path else path
