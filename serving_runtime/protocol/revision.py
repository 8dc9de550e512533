"""Revision header: names the revision of a service that answers, the same in every answer.

A gateway in front could set it; a server that sends it itself does not depend on that.
"""

HEADER = "fairlead-revision"


def header_line(revision: str) -> bytes:
    """Return the line of an HTTP answer's head; empty where the server is no revision."""
    return f"{HEADER}: {revision}\r\n".encode() if revision else b""


def metadata(revision: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata that an answer over gRPC begins with; none where the server is no revision."""
    return ((HEADER, revision),) if revision else ()
