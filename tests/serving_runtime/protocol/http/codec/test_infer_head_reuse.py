"""Heads that come again: with other ids, and with ids that are not as plain as ids are."""

import json

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import InferResponse, Tensor
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.codec.infer import InferCodec
from serving_runtime.protocol.http.codec.infer_head_reuse import HeadCache, without_id
from serving_runtime.protocol.http.wire.message import Request

INPUT = {"name": "x", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}
TAIL = {"inputs": [INPUT], "parameters": {"binary_data_output": True}}


def head_text(request_id: str | None, *, compact: bool = True) -> bytes:
    content = TAIL if request_id is None else {"id": request_id, **TAIL}
    return json.dumps(content, separators=(",", ":") if compact else None).encode()


@pytest.mark.parametrize("compact", [True, False])
def test_heads_that_differ_in_their_ids_are_one(compact: bool) -> None:
    cache = HeadCache()
    found = [cache.head(head_text(name, compact=compact)) for name in ("a", "b-7", None, "a")]
    assert [request_id for _, request_id, _ in found] == ["a", "b-7", "", "a"]
    assert len(cache._heads) == (1 if compact else 2)  # json puts a space after each comma
    assert found[0][0] is found[1][0] is found[3][0]
    assert found[0][2] is found[1][2] is found[3][2]


@pytest.mark.parametrize(
    ("text", "request_id", "rest"),
    [
        (b'{"id":"7","x":1}', "7", b'{"x":1}'),
        (b'{"id": "a b", "x":1}', "a b", b'{ "x":1}'),
        (b'{"id":"","x":1}', "", None),
        (b'{"id":"a"}', "", None),
        (b'{"id":"a" ,"x":1}', "", None),
        (b'{"id":"a\\"b","x":1}', "", None),
        (b'{"id":"a\x01b","x":1}', "", None),
        ('{"id":"é","x":1}'.encode(), "", None),
        (b'{"id":"\xff","x":1}', "", None),
        (b'{"id":7,"x":1}', "", None),
        (b'{"id":"never ends', "", None),
        (b'{"identity":"a","x":1}', "", None),
        (b"", "", None),
    ],
)
def test_an_id_is_parted_only_where_it_is_plain(text: bytes, request_id: str, rest: bytes | None) -> None:
    assert without_id(text) == (request_id, text if rest is None else rest)


@pytest.mark.parametrize(
    ("text", "request_id"),
    [
        pytest.param(b'{"id":"first","id":"last",%s', "last", id="the last of two members counts"),
        pytest.param(b'{"id":"first","id":"",%s', "first", id="but for an empty one, which is none"),
    ],
)
def test_two_ids(text: bytes, request_id: str) -> None:
    cache = HeadCache()
    for _ in range(2):
        assert cache.head(text % head_text(None)[1:])[1] == request_id


@pytest.mark.parametrize("text", [b'{"id":"a",}', b'{"id":"a",,"inputs":[]}', b'{"id":"a",'])
def test_a_head_that_is_no_json_with_its_id_is_none_without_it(text: bytes) -> None:
    with pytest.raises(InvalidArgument):
        HeadCache().head(text)


@given(st.lists(st.none() | st.text(max_size=8), min_size=1, max_size=6), st.booleans())
def test_whatever_the_ids_are_each_answer_has_that_of_its_request(ids: list[str | None], compact: bool) -> None:
    codec = InferCodec("m", "1", Engine([], LoadSettings()))
    for number, request_id in enumerate(ids):
        text = head_text(request_id, compact=compact)
        body = text + np.float32(number).tobytes()
        request, form = codec.decode(Request(b"POST", b"/", body, 0, len(text)))
        assert request.id == (request_id or "")
        response = InferResponse("m", "1", (Tensor("y", DATATYPES["FP32"], request.inputs[0].array),), request.id)
        answer = codec.encode(response, form)
        whole = b"".join(bytes(chunk) for chunk in answer.chunks)
        length = int(answer.headers.split(b"Inference-Header-Content-Length: ")[1].split(b"\r\n")[0])
        content = orjson.loads(whole[:length])
        assert (len(whole), whole[length:]) == (answer.length, np.float32(number).tobytes())
        assert content.get("id", "") == request.id
        assert list(content) == ["model_name", "model_version", *(["id"] if request.id else []), "outputs"]
