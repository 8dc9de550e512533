"""From method and path to the view: what fits, what goes first, and what is said where nothing does."""

import asyncio
from typing import Any

import orjson
import pytest

from serving_runtime.common.errors import InvalidArgument, NotFound, Unavailable
from serving_runtime.protocol.http.api.routes import Call, Route, Routes, later, of_versions
from serving_runtime.protocol.http.wire.message import Request, Response, json_response


def view(word: str):
    return lambda call: json_response([word, call.names])


ROUTES = Routes(
    [
        Route("GET", "/v2", "metadata", "", view("server")),
        Route("GET", "/v2/models/stats", "statistics", "", view("all")),
        *of_versions("GET", "", "metadata", "", view("model")),
        *of_versions("GET", "/ready", "health", "", view("ready")),
        Route("GET", "/v2/logging", "logging", "", view("get")),
        Route("POST", "/v2/logging", "logging", "", view("post")),
        Route("GET", "/v1/models/{model}", "metadata", "", view("v1")),
        Route("POST", "/v1/models/{model}:predict", "inference", "", view("predict")),
        Route("POST", "/body", "inference", "", lambda call: json_response(call.content())),
    ]
)


def ask(method: str, path: str, body: bytes = b"", routes: Routes = ROUTES) -> tuple[int, Any]:
    answers: list[Response] = []
    assert routes.handle(Request(method.encode(), path.encode(), b"--" + body, 2, None), answers.append) is None
    (answer,) = answers
    return answer.status, orjson.loads(answer.chunks[0])


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", "/v2", ["server", {}]),
        ("GET", "/v2/?x=/models", ["server", {}]),
        ("GET", "/v2/models/m", ["model", {"model": "m"}]),
        ("GET", "/v2/models/m/versions/3", ["model", {"model": "m", "version": "3"}]),
        ("GET", "/v2/models/m/versions/3/ready/", ["ready", {"model": "m", "version": "3"}]),
        ("GET", "/v2/models/a%2Fb%C3%A9/ready", ["ready", {"model": "a/bé"}]),
        ("GET", "/v2/models/stats", ["all", {}]),
        ("GET", "/v2/models/stats/ready", ["ready", {"model": "stats"}]),
        ("POST", "/v2/logging", ["post", {}]),
        ("POST", "/v1/models/m:predict", ["predict", {"model": "m"}]),
        ("POST", "/v1/models/a:predict:predict", ["predict", {"model": "a:predict"}]),
        ("GET", "/v1/models/m:else", ["v1", {"model": "m:else"}]),
    ],
)
def test_a_path_finds_its_view(method: str, path: str, answer: object) -> None:
    assert ask(method, path) == (200, answer)


@pytest.mark.parametrize("path", ["/", "/v2/models/m/versions", "/v2/models", "/v3", "/v2/models//ready", "*"])
def test_a_path_with_nothing_behind_it_is_named(path: str) -> None:
    with pytest.raises(NotFound, match="there is nothing at"):
        ask("GET", path)


@pytest.mark.parametrize(
    ("method", "path", "sentence"),
    [("POST", "/v2", "takes GET only"), ("PUT", "/v2/logging", "takes GET and POST only")],
)
def test_another_method_is_told_which_ones_there_are(method: str, path: str, sentence: str) -> None:
    status, answer = ask(method, path)
    assert status == 405
    assert sentence in answer["error"]


def test_the_body_is_an_object_or_nothing() -> None:
    assert ask("POST", "/body") == (200, {})
    assert ask("POST", "/body", b'{"a": 1}') == (200, {"a": 1})
    for body in (b"[1]", b"{", b'"text"'):
        with pytest.raises(InvalidArgument, match=r"must be a JSON object|not valid JSON"):
            ask("POST", "/body", body)


@pytest.mark.parametrize(
    ("failure", "status", "sentence"),
    [
        (None, 200, "done"),
        (Unavailable("not now"), 503, "not now"),
        (RuntimeError("secret"), 500, "internal error"),
    ],
)
async def test_an_answer_that_takes_a_while(failure: Exception | None, status: int, sentence: str) -> None:
    begun = asyncio.Event()

    async def work(_call: Call) -> Response:
        await begun.wait()
        if failure is not None:
            raise failure
        return json_response("done")

    answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    routes = Routes([Route("POST", "/slow", "inference", "", later(work))])
    assert routes.handle(Request(b"POST", b"/slow", b"", 0, None), answered.set_result) is None
    begun.set()
    answer = await asyncio.wait_for(answered, 10)
    assert answer.status == status
    assert sentence in bytes(answer.chunks[0]).decode()
