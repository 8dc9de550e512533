"""Server-sent events as bytes (WHATWG HTML, 9.2.6), for pages that stream. Pure."""

import re

CONTENT_TYPE = "text/event-stream"
_LINE_END = re.compile(r"\r\n|\r|\n")


def event(data: str, *, name: str = "", event_id: int | None = None) -> bytes:
    """Return one event; `data` may have several lines, `name` is the event type of listeners.

    Args:
        event_id: the `Last-Event-ID` that the browser sends after a lost connection.

    Raises:
        ValueError: the name has a line end, which would start another field.
    """
    if _LINE_END.search(name):
        raise ValueError(f"the name of an event is one line: {name!r}")
    lines = [f"id: {event_id}"] if event_id is not None else []
    if name:
        lines.append(f"event: {name}")
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


def retry(milliseconds: int) -> bytes:
    """Return the reconnection time of the browser."""
    return f"retry: {milliseconds}\n\n".encode()
