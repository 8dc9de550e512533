"""A web server of one file that can be told to misbehave, on a port of its own, for tests of downloads."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What is served, and how.

    Attributes:
        cuts: after how many bytes each of the next answers ends, though it promised more.
        statuses: what the next requests are answered instead.
        ignores_ranges: every answer begins at byte 0.
        asked: what each request's headers Range and Authorization were.
    """

    content: bytes
    filename: str = "model.onnx"
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    ignores_ranges: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(content: bytes, filename: str = "model.onnx") -> Iterator[Served]:
    """Serve the content at every path inside the block."""
    served = Served(content, filename)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append((self.headers.get("Range", ""), self.headers.get("Authorization", "")))
            if served.statuses:
                body = b'{"error": {"message": "that is the sentence"}}'
                self.send_response(served.statuses.pop(0))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            first = int(found[1]) if found and not served.ignores_ranges else 0
            size = len(served.content)
            if first and first >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{size - 1}/{size}")
            self.send_header("Content-Length", str(size - first))
            self.send_header("Content-Disposition", f'attachment; filename="{served.filename}"')
            self.end_headers()
            cut = served.cuts.pop(0) if served.cuts else size
            self.wfile.write(served.content[first : first + cut])
            if cut < size - first:
                self.close_connection = True

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_address[1]}/artifact"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
