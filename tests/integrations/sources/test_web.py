"""Fetching by http from a real server on this machine, a good one and several that are not."""

import socket
import threading
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import httpx
import pytest

from common.errors import InvalidInput, NotFound, TooLarge, Unavailable
from integrations.artifacts.store import StoredArtifact
from integrations.sources import web as module
from integrations.sources.content import CHUNK_BYTES
from tests.integrations._support.web_servers import WebServer, sha256_of

Fetch = Callable[..., StoredArtifact]
Names = Callable[[], list[str]]
CONTENT = b"model" * 100_000


def test_a_file_comes_in_with_its_progress(web: WebServer, fetch: Fetch) -> None:
    seen: list[tuple[int, int | None]] = []
    uri = web.gives("/models/digits.onnx", CONTENT)
    found = fetch(uri, allowed=[web.url], sha256=sha256_of(CONTENT), progress=lambda *now: seen.append(now))
    assert (found.size_bytes, found.files) == (len(CONTENT), {"model.onnx": sha256_of(CONTENT)})
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_an_address_that_does_not_tell_the_format_is_helped_by_a_file_name(web: WebServer, fetch: Fetch) -> None:
    uri = web.gives("/download?id=3", CONTENT)
    assert fetch(uri, allowed=[web.url], filename="digits.onnx").files == {"model.onnx": sha256_of(CONTENT)}


def test_redirects_within_what_is_allowed_are_followed(web: WebServer, fetch: Fetch) -> None:
    web.gives("/store/abc?signature=1", CONTENT)
    web.says("/b.onnx", 307, Location="/store/abc?signature=1")
    uri = web.says("/a.onnx", 302, Location=f"{web.url}/b.onnx")
    assert fetch(uri, allowed=[web.url]).size_bytes == len(CONTENT)


@pytest.mark.parametrize(
    "target",
    [
        "/private/secret",
        "/models/../private/secret",
        "//127.0.0.1:1/models/m.onnx",
        "http://localhost:{port}/models/m.onnx",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "ftp://127.0.0.1/models/m.onnx",
        "http://127.0.0.1:{port}@127.0.0.1:{port}/models/m.onnx",
    ],
)
def test_a_redirect_to_anywhere_else_is_refused_before_it_is_asked(
    web: WebServer, fetch: Fetch, left_behind: Names, target: str
) -> None:
    web.gives("/private/secret", CONTENT)
    web.gives("/models/m.onnx", CONTENT)
    uri = web.says("/models/a.onnx", 302, Location=target.format(port=web.server_port))
    with pytest.raises((InvalidInput, Unavailable)):
        fetch(uri, allowed=[f"{web.url}/models", "file:///etc"])
    assert web.asked == ["/models/a.onnx"]
    assert left_behind() == []


def test_redirects_without_end_are_given_up(web: WebServer, fetch: Fetch) -> None:
    uri = web.says("/a.onnx", 302, Location="/a.onnx")
    with pytest.raises(InvalidInput, match="redirects more than 5 times"):
        fetch(uri, allowed=[web.url])
    assert len(web.asked) == module.MAX_REDIRECTS + 1


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (404, NotFound, "answered 404"),
        (403, InvalidInput, "answered 403"),
        (204, InvalidInput, "expected the file"),
        (206, InvalidInput, "expected the file"),
        (429, Unavailable, "answered 429"),
        (503, Unavailable, "answered 503"),
    ],
)
def test_a_refusal_is_told_and_only_some_are_worth_a_retry(
    web: WebServer, fetch: Fetch, left_behind: Names, status: int, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        fetch(web.says("/m.onnx", status), allowed=[web.url])
    assert left_behind() == []


def test_a_body_that_ends_early_is_no_model(web: WebServer, fetch: Fetch, left_behind: Names) -> None:
    uri = web.gives("/m.onnx", CONTENT, length=len(CONTENT) + 1)
    with pytest.raises(Unavailable, match="cannot be read"):
        fetch(uri, allowed=[web.url])
    assert left_behind() == []


def test_what_comes_after_the_announced_length_is_not_read(web: WebServer, fetch: Fetch) -> None:
    assert fetch(web.gives("/m.onnx", CONTENT, length=7), allowed=[web.url]).size_bytes == 7


def test_what_is_not_what_the_caller_expected_leaves_nothing(web: WebServer, fetch: Fetch, left_behind: Names) -> None:
    with pytest.raises(InvalidInput, match=f"is {sha256_of(CONTENT)}, but {'0' * 64} was expected"):
        fetch(web.gives("/m.onnx", CONTENT), allowed=[web.url], sha256="0" * 64)
    assert left_behind() == []


def test_too_large_is_told_from_the_length_alone(web: WebServer, fetch: Fetch, left_behind: Names) -> None:
    with pytest.raises(TooLarge, match=f"has {9 * CHUNK_BYTES} bytes or more; {8 * CHUNK_BYTES} are allowed"):
        fetch(web.gives("/m.onnx", b"x", length=9 * CHUNK_BYTES), allowed=[web.url])
    assert left_behind() == []


def test_a_body_without_end_is_cut_at_the_limit(web: WebServer, fetch: Fetch, left_behind: Names) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(1000):
                handler.wfile.write(bytes(CHUNK_BYTES))
        except OSError:
            return
        raise AssertionError("all of it was read")

    web.answers["/m.onnx"] = endless
    with pytest.raises(TooLarge):
        fetch(f"{web.url}/m.onnx", allowed=[web.url])
    assert left_behind() == []


def test_a_body_that_comes_drop_by_drop_is_given_up_in_the_end(
    web: WebServer, fetch: Fetch, left_behind: Names
) -> None:
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(CHUNK_BYTES))
        handler.end_headers()
        while not over.wait(0.01):
            try:
                handler.wfile.write(b"x")
            except OSError:
                return

    web.answers["/m.onnx"] = drip
    try:
        with pytest.raises(InvalidInput, match=r"did not come within 0\.3 s"):
            fetch(f"{web.url}/m.onnx", allowed=[web.url], timeout_s=0.3)
    finally:
        over.set()
    assert left_behind() == []


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    fetch: Fetch, left_behind: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", httpx.Timeout(0.2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unavailable, match="sent nothing for too long"):
            fetch(f"{url}/m.onnx", allowed=[url])
    with pytest.raises(Unavailable, match="cannot be read"):
        fetch(f"{url}/m.onnx", allowed=[url])
    assert left_behind() == []


def test_a_body_that_is_compressed_unasked_is_refused(web: WebServer, fetch: Fetch) -> None:
    with pytest.raises(InvalidInput, match="Content-Encoding 'gzip'"):
        fetch(web.says("/m.onnx", 200, Content_Encoding="gzip"), allowed=[web.url])


def test_what_is_stopped_in_the_middle_leaves_nothing(web: WebServer, fetch: Fetch, left_behind: Names) -> None:
    class Stopped(BaseException):
        pass

    def stop(done: int, total: int | None) -> None:
        if done:
            raise Stopped

    with pytest.raises(Stopped):
        fetch(web.gives("/m.onnx", CONTENT), allowed=[web.url], progress=stop)
    assert left_behind() == []


def test_memory_stays_small_whatever_the_size(web: WebServer, fetch: Fetch) -> None:
    def large(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(8 * CHUNK_BYTES))
        handler.end_headers()
        for _ in range(8 * 16):
            handler.wfile.write(bytes(CHUNK_BYTES // 16))

    web.answers["/m.onnx"] = large
    tracemalloc.start()
    try:
        assert fetch(f"{web.url}/m.onnx", allowed=[web.url]).size_bytes == 8 * CHUNK_BYTES
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * CHUNK_BYTES
