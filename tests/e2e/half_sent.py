"""A place to import a model from: it sends the first half and then nothing until it is told to go on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HalfSent:
    """The place.

    Attributes:
        url: its address; every path there is the model.
        asked: the paths that were asked for.
        go_on: lets it send the other halves.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[str] = []
        self.go_on = threading.Event()


@contextmanager
def half_sent(content: bytes) -> Iterator[HalfSent]:
    """Serve the content on a free port of 127.0.0.1 while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            half = len(content) // 2
            try:
                self.wfile.write(content[:half])
                place.go_on.wait(60)
                self.wfile.write(content[half:])
            except OSError:
                return

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    place = HalfSent(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield place
    finally:
        place.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
