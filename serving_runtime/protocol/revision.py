"""Who answers, where a server is one of several revisions of a service: one header, the same in every answer.

The name is what a gateway in front would set; a server that says it itself needs no gateway that can.
"""

HEADER = "fairlead-revision"


def header_line(revision: str) -> bytes:
    """Return the line of an HTTP answer's head; empty where the server is nobody's revision."""
    return f"{HEADER}: {revision}\r\n".encode() if revision else b""


def metadata(revision: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata that an answer over gRPC begins with; none where the server is nobody's revision."""
    return ((HEADER, revision),) if revision else ()
