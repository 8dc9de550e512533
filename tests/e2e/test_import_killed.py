"""A worker that is killed in the middle of an import: another begins it anew, and nothing half-done stays."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.harness import Platform, until

pytestmark = pytest.mark.e2e


class _Slow(BaseHTTPRequestHandler):
    """Sends the first half of the model and then nothing, until it is told to go on."""

    content = b""
    go_on = threading.Event()
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        half = len(self.content) // 2
        self.wfile.write(self.content[:half])
        self.go_on.wait(60)
        try:
            self.wfile.write(self.content[half:])
        except OSError:
            return

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def slow(models: Path) -> Iterator[str]:
    _Slow.content = sorted(models.glob("*.onnx"))[0].read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    _Slow.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_killed_workers_import_is_begun_anew(slow: str, tmp_path: Path) -> None:
    platform = Platform(tmp_path / ".fairlead", variables={"FAIRLEAD_IMPORT_FROM": slow, "NO_PROXY": "127.0.0.1"})
    platform.start()
    try:
        platform.fairlead("models", "push", f"{slow}/digits.onnx", "--name", "digits")
        incoming = platform.home / "artifacts" / ".incoming"
        until(lambda: _Slow.asked and any(incoming.glob("import-1-*/model.onnx")), what="the first half")
        before = platform.record("worker")["pid"]
        os.kill(before, signal.SIGKILL)
        _Slow.go_on.set()
        until(lambda: platform.record("worker")["pid"] != before, what="another worker")

        def imported() -> bool:
            (row,) = json.loads(platform.fairlead("models", "imports", "digits", "-o", "json").stdout)
            assert row["status"] != "FAILED", row
            return (row["status"], row["version"], row["attempts"]) == ("IMPORTED", 1, 2)

        until(imported, within_s=60, what="the second attempt's end")
        assert _Slow.asked == ["/digits.onnx"] * 2
        assert list(incoming.glob("import-*")) == []
    finally:
        platform.stop()
