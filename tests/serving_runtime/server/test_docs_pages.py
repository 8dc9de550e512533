"""The OpenAPI documents and pages that the server serves about itself: valid, true, and safe to look at."""

from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

pytestmark = pytest.mark.feature("P14")

ODD = "<b>odd & 'name'"


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.add(onnx_models.configure(root / "sums", "max_batch_size: 8") / "1" / "model.onnx")
    onnx_models.identity(root / ODD / "1" / "model.onnx", shape=(2, "W"))
    with server(
        root,
        "--allow-client-shm",
        "--model-control-mode=explicit",
        "--load-model=*",
        scratch=tmp_path_factory.mktemp("ports"),
    ) as process:
        yield process


def document(process: ServerProcess, path: str = "/v2") -> dict[str, Any]:
    answer = httpx.get(f"{process.url}{path}/docs/dataplane.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    content: dict[str, Any] = answer.json()
    return content


@pytest.mark.parametrize("path", ["/v2", "/v2/models/sums", "/v2/models/sums/versions/1", f"/v2/models/{quote(ODD)}"])
def test_the_documents_are_openapi(documented: ServerProcess, path: str) -> None:
    schemathesis.openapi.from_dict(document(documented, path)).validate()


def test_all_that_is_told_is_told_in_its_form(documented: ServerProcess) -> None:
    schema = schemathesis.openapi.from_dict(document(documented))
    asked = 0
    for path, operations in document(documented)["paths"].items():
        if "get" not in operations or "cudasharedmemory/region" in path or path.endswith("/docs"):
            continue
        url = documented.url + path.format(model="sums", version="1", region="nobody")
        answer = httpx.get(url)
        assert answer.status_code == (404 if "region" in path else 200), (path, answer.text)
        schema[path]["GET"].validate_response(answer)
        schema[path]["GET"].validate_response(httpx.get(url.replace("sums", "nobody")))
        asked += 1
    assert asked > 15


BODIES = {
    "/infer": {"inputs": [{"name": name, "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]} for name in "ab"]},
    "/infer_stream": {
        "inputs": [{"name": name, "datatype": "INT32", "shape": [1, 4], "data": [1, 2, 3, 4]} for name in "ab"]
    },
    "/generate": {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]},
    "/generate_stream": {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]},
    ":predict": {"instances": [{"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]}]},
    ":classify": {}, ":regress": {}, ":explain": {},
}  # fmt: skip


def test_a_model_answers_as_its_document_says(documented: ServerProcess) -> None:
    content = document(documented, "/v2/models/sums/versions/1")
    schema = schemathesis.openapi.from_dict(content)
    for path, operations in content["paths"].items():
        if "post" not in operations:
            continue
        (body,) = [body for ending, body in BODIES.items() if path.endswith(ending)]
        answer = httpx.post(documented.url + path, json=body)
        assert answer.status_code == (200 if body else 501), (path, answer.text)
        schema[path]["POST"].validate_response(answer)
        schema[path]["POST"].validate_response(httpx.post(documented.url + path, json={"inputs": 1}))
    assert set(content["paths"]) >= {f"/v2/models/sums/versions/1{ending}" for ending in ("", "/infer", "/config")}


def test_a_models_document_says_what_its_tensors_are(documented: ServerProcess) -> None:
    schemas = document(documented, "/v2/models/sums")["components"]["schemas"]
    a, b = schemas["InferInput"]["oneOf"]
    assert [schema["properties"]["name"]["const"] for schema in (a, b)] == ["a", "b"]
    assert a["properties"]["datatype"] == {"const": "INT32"}
    assert a["properties"]["shape"]["prefixItems"] == [{"type": "integer", "minimum": 1}, {"const": 4}]
    assert (schemas["InferRequest"]["properties"]["inputs"]["minItems"]) == 2


def test_the_pages_need_nothing_from_elsewhere(documented: ServerProcess) -> None:
    for path in ("/v2/docs", "/v2/models/sums/docs", f"/v2/models/{quote(ODD)}/versions/1/docs"):
        answer = httpx.get(documented.url + path)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "<script" not in answer.text
        assert ODD not in answer.text
        for link in answer.text.split('href="')[1:]:
            assert httpx.get(documented.url + link.split('"')[0]).status_code == 200
    assert httpx.get(f"{documented.url}/v2/models/nobody/docs").status_code == 404


def test_the_request_on_a_models_page_works(documented: ServerProcess) -> None:
    shown = unescape(httpx.get(f"{documented.url}/v2/models/sums/docs").text.split("<pre>")[1].split("</pre>")[0])
    command, address, flag, body = shown.split(" ", 3)
    assert (command, flag) == ("curl", "-d")
    answer = httpx.post(address.replace("http://HOST:8000", documented.url), content=body.strip("'"))
    assert answer.json()["outputs"][0]["data"] == [0, 0, 0, 0]
