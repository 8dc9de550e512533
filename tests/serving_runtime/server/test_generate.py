"""Text in, text out over HTTP: one answer, answers as events, and what goes wrong between them."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from onnx import TensorProto

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

pytestmark = pytest.mark.feature("E17")

OWN = Path(__file__).parents[1] / "own_backends"

WORDS = 'backend: "words" model_transaction_policy { decoupled: true }'
REPEAT = """
backend: "repeat" model_transaction_policy { decoupled: true }
parameters { key: "width" value { string_value: "100000" } }
parameters { key: "told" value { string_value: "TOLD" } }
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file to which `endless` writes when it is told to stop."""
    return tmp_path_factory.mktemp("told") / "told"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory, told: Path) -> Iterator[ServerProcess]:
    """A server of `words` and `endless`, which answer any number of times, and `echo` and `sums`, which do once."""
    root = tmp_path_factory.mktemp("repository")
    for name, config in (("words", WORDS), ("endless", REPEAT.replace("TOLD", str(told)))):
        (onnx_models.configure(root / name, config) / "1").mkdir()
    onnx_models.identity(root / "echo" / "1" / "model.onnx", TensorProto.STRING, ("N", "W"))
    onnx_models.add(root / "sums" / "1" / "model.onnx", TensorProto.FLOAT, ("N", "W"))
    with server(
        root,
        f"--backend-directory={OWN}",
        "--http-header-forward-pattern=^x-word-",
        scratch=tmp_path_factory.mktemp("ports"),
    ) as process:
        yield process


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    lines = answer.text.split("\n\n")
    assert lines.pop() == ""
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def ask(process: ServerProcess, path: str, content: object) -> httpx.Response:
    return httpx.post(f"{process.url}/v2/models/{path}", json=content, timeout=30)


def test_one_answer(texts: ServerProcess) -> None:
    answer = ask(texts, "words/generate", {"id": "7", "text_input": "one", "parameters": {"upper": True}})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "model_name": "words", "model_version": "1", "id": "7", "text_output": "ONE", "length": 3,
    }  # fmt: skip


def test_answers_as_events(texts: ServerProcess) -> None:
    answer = ask(texts, "words/versions/1/generate_stream", {"text_input": "one two", "upper": False, "repeat": 2})
    assert answer.status_code == 200
    assert [(event["text_output"], event["length"]) for event in events(answer)] == [
        ("one", 3), ("one", 3), ("two", 3), ("two", 3),
    ]  # fmt: skip
    assert events(ask(texts, "words/generate_stream", {"text_input": ""})) == []


def test_the_end_is_an_event_where_that_is_asked_for(texts: ServerProcess) -> None:
    content = {"text_input": "one", "parameters": {"triton_enable_empty_final_response": True}}
    assert [event.get("text_output") for event in events(ask(texts, "words/generate_stream", content))] == ["one", None]


def test_models_that_answer_once_take_both(texts: ServerProcess) -> None:
    expected = {"model_name": "echo", "model_version": "1", "y": ["a", "é"]}
    assert ask(texts, "echo/generate", {"x": ["a", "é"]}).json() == expected
    assert events(ask(texts, "echo/generate_stream", {"x": ["a", "é"]})) == [expected]
    numbers = ask(texts, "sums/generate", {"a": [0.5, 1], "parameters": {"b": [0.1, 2]}}).json()
    assert (numbers["sum"], numbers["difference"]) == ([0.6, 3.0], [0.4, -1.0])
    assert ask(texts, "sums/generate", {"a": 1, "b": 2.5}).json()["sum"] == 3.5


@pytest.mark.parametrize(
    ("path", "content", "status", "sentence"),
    [
        ("words/generate", {"text_input": "one two"}, 400, "exactly 1 response, found more than one"),
        ("words/generate", {"text_input": ""}, 400, "exactly 1 response, found no response"),
        ("words/generate", {"text_input": "fail"}, 500, "the model failed at a word"),
        ("words/generate_stream", {"text_input": "fail"}, 500, "the model failed at a word"),
        ("words/generate_stream", {}, 400, "input 'text_input' is missing"),
        ("words/generate_stream", {"text_input": 1}, 400, "BYTES data must be strings"),
        ("words/generate_stream", {"text_input": [["a"]]}, 400, "text_input"),
        ("words/generate_stream", {"text_input": "a", "parameters": {"text_input": "b"}}, 400, "is given twice"),
        ("words/generate_stream", {"text_input": "a", "parameters": []}, 400, "'parameters' must be an object"),
        ("words/generate_stream", {"text_input": "a", "parameters": {"triton_x": 1}}, 400, "reserved name"),
        ("words/generate_stream", {"text_input": "a", "mine": {}}, 400, "must be a string, a number"),
        ("words/generate_stream", {"text_input": "a", "id": 1}, 400, "'id' must be a string"),
        ("words/generate_stream", [], 400, "must be a JSON object"),
        ("nobody/generate_stream", {"text_input": "a"}, 404, "unknown model 'nobody'"),
        ("words/infer", {"inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["a"]}]}, 501,
         "use ModelStreamInfer or generate_stream"),
    ],
)  # fmt: skip
def test_what_fails_before_an_answer_is_an_error(
    texts: ServerProcess, path: str, content: object, status: int, sentence: str
) -> None:
    answer = ask(texts, path, content)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert sentence in answer.json()["error"]


def test_what_fails_between_answers_is_an_event(texts: ServerProcess) -> None:
    with httpx.Client(base_url=texts.url) as client:
        answer = client.post("/v2/models/words/generate_stream", json={"text_input": "one fail two"})
        assert answer.status_code == 200
        first, last = events(answer)
        assert (first["text_output"], last) == ("one", {"error": "the model failed at a word"})
        assert client.get("/v2/health/ready").status_code == 200


def test_v2_requests_are_answered_as_events_too(texts: ServerProcess) -> None:
    words = {"inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["one two fail"]}], "id": "7"}
    first, second, last = events(ask(texts, "words/infer_stream", words))
    assert (first["id"], second["outputs"][0]) == (
        "7",
        {"name": "text_output", "datatype": "BYTES", "shape": [1], "data": ["two"]},
    )
    assert last == {"error": "the model failed at a word"}
    binary = ask(texts, "words/infer_stream", {**words, "parameters": {"binary_data_output": True}})
    assert (binary.status_code, "in JSON only" in binary.json()["error"]) == (400, True)
    echo = {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1, 1], "data": ["a"]}]}
    (only,) = events(ask(texts, "echo/infer_stream", echo))
    assert only["outputs"][0]["data"] == ["a"]


@pytest.mark.feature("E16")
@pytest.mark.parametrize(("header", "word"), [("x-word-case", "ONE"), ("y-word-case", "one")])
def test_a_forwarded_header_reaches_the_model(texts: ServerProcess, header: str, word: str) -> None:
    url = f"{texts.url}/v2/models/words/generate"
    answer = httpx.post(url, json={"text_input": "one"}, headers={header: "upper"})
    assert answer.json()["text_output"] == word


@pytest.mark.feature("E20")
def test_a_client_that_goes_away_stops_the_model(texts: ServerProcess, told: Path) -> None:
    told.unlink(missing_ok=True)
    url = f"{texts.url}/v2/models/endless/generate_stream"
    with httpx.stream("POST", url, json={"x": -1}, timeout=30) as answer:
        assert answer.status_code == 200
        assert next(answer.iter_lines()).startswith("data: ")
    until(told.exists, "the model is told to stop")
    until(lambda: texts.metric("fairlead_inflight_requests") == 0, "nothing is in flight")


def test_a_model_waits_for_a_client_that_does_not_read(texts: ServerProcess, told: Path) -> None:
    told.unlink(missing_ok=True)
    body = json.dumps({"x": -1}).encode()
    with socket.create_connection(("127.0.0.1", texts.http)) as client:
        head = b"POST /v2/models/endless/generate_stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
        client.sendall(head % len(body) + body)
        assert client.recv(12) == b"HTTP/1.1 200"
        for _ in range(30):
            assert ask(texts, "words/generate", {"text_input": "meanwhile"}).json()["text_output"] == "meanwhile"
    until(told.exists, "the model is told to stop")
    assert int(told.read_text().split()[0]) < 100  # each is 200 kB of JSON and more


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)
