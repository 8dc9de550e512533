"""A folder brought back over HTTP: what arrives, what is tried again, what is refused."""

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from serving_runtime.__main__ import main
from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.upload import bring
from serving_runtime.common.errors import ModelError

QUICK = Patience(tries=3, first_s=0.0, longest_s=0.0)


class Registry:
    """Answers PUT with the next of `answers`, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.seen: list[tuple[dict[str, str], bytes]] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                registry.seen.append((dict(self.headers), body))
                content = json.dumps({"error": {"message": "it is not wanted"}}).encode()
                self.send_response(registry.answers.pop(0))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/results/1"


@pytest.fixture
def there() -> Iterator[Registry]:
    registry = Registry()
    thread = threading.Thread(target=registry.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield registry
    registry.server.shutdown()
    registry.server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out" / "1").mkdir(parents=True)
    (tmp_path / "out" / "1" / "model.onnx").write_bytes(b"a model")
    (tmp_path / "out" / "config.pbtxt").write_bytes(b"")
    (tmp_path / "token").write_text("abc\n")
    return tmp_path / "out"


def test_all_files_arrive_with_their_sum_and_the_token(there: Registry, folder: Path) -> None:
    there.answers = [204]
    bring(folder, there.url, folder.parent / "token", None, QUICK)
    ((headers, body),) = there.seen
    with tarfile.open(fileobj=io.BytesIO(body)) as packed:
        assert packed.getnames() == ["1/model.onnx", "config.pbtxt"]
    assert headers["X-Content-SHA256"] == hashlib.sha256(body).hexdigest()
    assert headers["Authorization"] == "Bearer abc"


def test_the_command_sends_a_folder_and_says_why_it_cannot(
    there: Registry, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there.answers = [204, 409]
    arguments = ["upload", str(folder), f"--to={there.url}", f"--token-file={folder.parent / 'token'}"]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"fairlead-serve upload: {there.url} answered 409 Conflict: it is not wanted\n"


def test_what_may_go_better_later_is_sent_again(there: Registry, folder: Path) -> None:
    there.answers = [503, 401, 204]
    bring(folder, there.url, folder.parent / "token", None, QUICK)
    assert len({body for _, body in there.seen}) == 1
    assert len(there.seen) == 3


def test_a_refusal_is_told_in_the_words_of_who_refused(there: Registry, folder: Path) -> None:
    there.answers = [409]
    with pytest.raises(ModelError, match="answered 409 Conflict: it is not wanted"):
        bring(folder, there.url, None, None, QUICK)
    there.answers = [503] * 3
    with pytest.raises(ModelError, match=r"could not be brought back: .* answered 503"):
        bring(folder, there.url, None, None, QUICK)
    assert len(there.seen) == 4
