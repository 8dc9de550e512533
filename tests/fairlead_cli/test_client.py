"""Requests as they go out, answers and refusals as they come back."""

import hashlib
import io
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.client import Client, path
from fairlead_cli.config import Access
from fairlead_cli.errors import ApiError, BrokenOff, CliError, NotFound, Unreachable
from fairlead_cli.files.upload_sources import source_of


@pytest.fixture
def client(api: Any) -> Iterator[Client]:
    with Client(Access(api.url, "flt_x")) as made:
        yield made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_parts_of_a_path_are_escaped() -> None:
    assert path("models", "..x", 3, "a b?c") == "models/..x/3/a%20b%3Fc"


@pytest.mark.parametrize("name", ["../tokens", "a/b", "..", ".", ""])
def test_a_name_that_would_lead_elsewhere_is_no_part_of_a_path(name: str) -> None:
    with pytest.raises(CliError, match="can be no name; expected letters"):
        path("models", name)


def test_the_token_goes_along(api: Any, client: Client) -> None:
    api.on("GET /whoami", {"user": "ann"})

    assert client.get("whoami") == {"user": "ann"}
    assert api.seen[0].headers["authorization"] == "Bearer flt_x"


def test_lists_are_read_page_after_page(api: Any, client: Client) -> None:
    api.on("GET /models", {"next": "http://elsewhere/api/v1/models?cursor=c2", "results": [{"name": "a"}]})
    api.on("GET /models?cursor=c2", {"next": None, "results": [{"name": "b"}]})

    assert client.all("models") == [{"name": "a"}, {"name": "b"}]


def test_an_empty_list_is_one_page(api: Any, client: Client) -> None:
    api.on("GET /models", {"next": None, "results": []})

    assert client.all("models") == []
    assert len(api.seen) == 1


def test_a_limit_ends_the_reading(api: Any, client: Client) -> None:
    api.on("GET /events?limit=2", {"next": f"{api.url}/api/v1/events?cursor=c", "results": [1, 2]})

    assert client.all("events", limit=2) == [1, 2]
    assert len(api.seen) == 1


def test_an_upload_streams_its_bytes_and_their_digest(api: Any, client: Client, tmp_path: Path) -> None:
    content = b"onnx" * 200_000
    file = tmp_path / "my model.onnx"
    file.write_bytes(content)
    api.on("POST /models/m/versions?filename=my+model.onnx", {"number": 1}, status=201)
    sent: list[int] = []

    answer = client.upload("models/m/versions", source_of(file), hashlib.sha256(content).hexdigest(), sent.append)

    assert answer == {"number": 1}
    seen = api.seen[0]
    assert (seen.body, sum(sent)) == (content, len(content))
    assert seen.headers["x-content-sha256"] == hashlib.sha256(content).hexdigest()
    assert "transfer-encoding" not in seen.headers


@pytest.mark.parametrize(
    "first",
    [
        pytest.param((0, b""), id="the connection breaks"),
        pytest.param((500, b"Internal Server Error"), id="its server has to end"),
        pytest.param((502, b"<html>Bad Gateway</html>"), id="an ingress has no pod to send it to"),
    ],
)
def test_an_upload_that_breaks_off_is_sent_again(api: Any, client: Client, tmp_path: Path, first: Any) -> None:
    content = b"onnx" * 200_000
    (tmp_path / "model.onnx").write_bytes(content)
    api.answers["POST /models/m/versions?filename=model.onnx"] = [first, (201, {"number": 1})]
    api.on("GET /whoami", {"user": "ann"})
    sent: list[int] = []

    assert client.upload("models/m/versions", source_of(tmp_path / "model.onnx"), "0" * 64, sent.append) == {
        "number": 1
    }

    assert [seen.method for seen in api.seen] == ["POST", "GET", "POST"]
    assert api.seen[2].body == content
    assert sum(sent) == len(content)


def test_an_upload_that_always_breaks_off_is_given_up(api: Any, client: Client, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"onnx")
    api.answers["POST /models/m/versions?filename=model.onnx"] = [(0, b"")]
    api.on("GET /whoami", {"user": "ann"})

    with pytest.raises(BrokenOff, match="went away in the middle of POST models/m/versions"):
        client.upload("models/m/versions", source_of(tmp_path / "model.onnx"), "0" * 64, lambda _count: None)

    assert len([seen for seen in api.seen if seen.method == "POST"]) == 5


def test_a_refused_upload_is_not_sent_again(api: Any, client: Client, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"onnx")
    api.refuse("POST /models/m/versions?filename=model.onnx", 503, "the model file could not be stored: disk full")

    with pytest.raises(ApiError, match="disk full"):
        client.upload("models/m/versions", source_of(tmp_path / "model.onnx"), "0" * 64, lambda _count: None)

    assert len(api.seen) == 1


THROTTLED = {"error": {"code": "throttled", "message": "token 'ann' sends more than 3000 requests a minute"}}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let time pass at once; return how long the client waited."""
    waited: list[float] = []
    monkeypatch.setattr("fairlead_cli.client.sleep", waited.append)
    return waited


@pytest.mark.parametrize("method", ["get", "put", "post", "patch", "delete"])
def test_a_request_beyond_its_limit_is_sent_again_when_its_time_has_come(
    api: Any, client: Client, waits: list[float], capsys: pytest.CaptureFixture[str], method: str
) -> None:
    api.answers[f"{method.upper()} /policies/a"] = [(429, THROTTLED), (429, THROTTLED), (200, {"name": "a"})]
    api.retry_after = "7"

    arguments = ({"name": "a"},) if method not in {"get", "delete"} else ()
    getattr(client, method)("policies/a", *arguments)

    assert waits == [7, 7]
    assert len({(seen.method, seen.body) for seen in api.seen}) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "waiting until requests are allowed again, now 7 s: token 'ann' sends more than 3000 requests a minute"
    ]


def test_after_a_minute_of_waiting_the_refusal_is_shown(api: Any, client: Client, waits: list[float]) -> None:
    api.on("GET /models", THROTTLED, status=429)
    api.retry_after = "25"

    with pytest.raises(ApiError, match="more than 3000 requests a minute"):
        client.get("models")
    assert waits == [25, 25]


@pytest.mark.parametrize("after", ["", "0", "61", "-1", "1e3", "Wed, 21 Oct 2026 07:28:00 GMT", "²"])
def test_a_time_that_is_none_or_too_long_is_not_waited_for(
    api: Any, client: Client, waits: list[float], after: str
) -> None:
    api.on("GET /models", THROTTLED, status=429)
    api.retry_after = after

    with pytest.raises(ApiError):
        client.get("models")
    assert (waits, len(api.seen)) == ([], 1)


def test_after_a_proxys_refusal_only_what_may_be_repeated_is(api: Any, client: Client, waits: list[float]) -> None:
    api.answers["GET /models"] = [(429, b"<html>Too Many Requests</html>"), (200, {})]
    api.answers["POST /models"] = [(429, b"<html>Too Many Requests</html>"), (200, {})]
    api.retry_after = "1"

    assert client.get("models") == {}
    with pytest.raises(ApiError, match="429 Too Many Requests"):
        client.post("models")
    assert waits == [1]


def test_an_upload_beyond_a_limit_is_sent_again_from_its_start(
    api: Any, client: Client, tmp_path: Path, waits: list[float]
) -> None:
    content = b"onnx" * 200_000
    (tmp_path / "model.onnx").write_bytes(content)
    api.answers["POST /models/m/versions?filename=model.onnx"] = [(429, THROTTLED), (201, {"number": 1})]
    api.retry_after = "3"
    sent: list[int] = []

    assert client.upload("models/m/versions", source_of(tmp_path / "model.onnx"), "0" * 64, sent.append)
    assert [seen.body for seen in api.seen] == [content, content]
    assert (sum(sent), waits) == (len(content), [3])


def test_a_download_beyond_a_limit_is_asked_for_again(api: Any, client: Client, waits: list[float]) -> None:
    api.answers["GET /models/m/versions/1/artifact"] = [(429, THROTTLED), (200, b"bytes")]
    api.retry_after = "2"
    target = io.BytesIO()

    client.download("models/m/versions/1/artifact", target, lambda _came, _size: None)
    assert (target.getvalue(), waits) == (b"bytes", [2])


def test_a_refusal_is_the_apis_sentence(api: Any, client: Client) -> None:
    api.refuse("PUT /policies/p", 400, "weights have to rise; step 2 has 10 after 20", code="invalid")

    with pytest.raises(ApiError, match="weights have to rise") as caught:
        client.put("policies/p", {})
    assert (caught.value.refusal.code, caught.value.refusal.request_id, caught.value.exit_code) == ("invalid", "r1", 1)


def test_what_is_not_there_is_its_own_error(client: Client) -> None:
    with pytest.raises(NotFound, match="no /models/x"):
        client.get("models/x")


def test_a_missing_token_says_how_to_get_one(api: Any) -> None:
    api.refuse("GET /whoami", 401, "no credentials")

    with Client(Access(api.url, "")) as client, pytest.raises(ApiError, match=r"no token for .*`fairlead login`"):
        client.get("whoami")


def test_a_server_that_is_not_ours_is_called_so(api: Any, client: Client) -> None:
    api.on("GET /whoami", b"<html>hello</html>")
    api.on("GET /models", b"<html>oops</html>", status=502)

    with pytest.raises(CliError, match=r"not JSON; is http://\S+ Fairlead"):
        client.get("whoami")
    with pytest.raises(ApiError, match="answered 502 Bad Gateway"):
        client.get("models")


def test_nobody_there_is_unreachable() -> None:
    port = free_port()

    with Client(Access(f"http://127.0.0.1:{port}", "")) as client, pytest.raises(Unreachable, match="no answer from"):
        client.get("whoami")


def test_a_proxy_is_not_asked_about_this_machine(api: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    api.on("GET /whoami", {"user": "ann"})

    with Client(Access(api.url, "")) as made:
        assert made.get("whoami") == {"user": "ann"}


def test_a_fault_of_the_server_is_shown_with_the_id_that_its_log_has(api: Any, client: Client) -> None:
    api.refuse("GET /models", 500, "this is a fault of the server", code="internal")
    api.refuse("GET /services", 507, "x cannot be written", code="no_room")

    with pytest.raises(ApiError, match=r"^this is a fault of the server \(request r1\)$"):
        client.get("models")
    with pytest.raises(ApiError, match=r"^x cannot be written$"):
        client.get("services")


def test_a_refusal_for_several_reasons_has_a_line_for_each(api: Any, client: Client) -> None:
    error = {"code": "invalid_input", "message": "the file has 2 faults; the first: a is 1", "field": "a"}
    api.on("PUT /policies/a", {"error": {**error, "request_id": None, "details": ["a is 1", "b is 2"]}}, status=400)
    with pytest.raises(ApiError) as refusal:
        client.put("policies/a", {})
    assert str(refusal.value) == "the file has 2 faults; the first: a is 1\n  b is 2"
