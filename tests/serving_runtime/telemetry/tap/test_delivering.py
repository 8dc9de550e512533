"""Events one by one, as receivers that know KServe's payload logger expect them."""

import json
from collections.abc import Iterator
from urllib.parse import unquote

import numpy as np
import pytest

from serving_runtime.telemetry.tap.delivering import LoggerSink
from serving_runtime.telemetry.tap.sinks import Event, SinkError
from tests.serving_runtime._support.event_receiver import Receiver, receiving


def event(request_id: str, number: int = 0) -> Event:
    return {
        "specversion": "1.0",
        "id": f"{request_id}:{number}",
        "source": "/digits/pod/1",
        "type": f"org.kubeflow.serving.inference.{'response' if number else 'request'}",
        "requestid": request_id,
        "modelname": "digits",
        "datacontenttype": "application/json",
        "data": {"inputs": [{"name": "x", "data": np.array([1.5, 2.0])}]},
    }


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def test_attributes_are_headers_and_the_payload_is_the_body(receiver: Receiver) -> None:
    sink = LoggerSink(receiver.url, {"inferenceservicename": "digits", "namespace": "vision"})
    sink.write([event("a", 0)])
    sink.write([event("a", 1)])
    sink.close()
    (asked, body), (answered, _) = receiver.posts
    assert json.loads(body) == {"inputs": [{"name": "x", "data": [1.5, 2.0]}]}
    told = {name.lower(): value for name, value in asked.items() if name.lower().startswith(("ce-", "content-type"))}
    assert told == {
        "ce-specversion": "1.0",
        "ce-id": "a",
        "ce-source": "/digits/pod/1",
        "ce-type": "org.kubeflow.serving.inference.request",
        "ce-requestid": "a",
        "ce-modelname": "digits",
        "ce-inferenceservicename": "digits",
        "ce-namespace": "vision",
        "content-type": "application/json",
    }
    assert (answered["ce-id"], answered["ce-type"]) == ("a", "org.kubeflow.serving.inference.response")


def test_a_name_that_no_header_can_have_is_encoded(receiver: Receiver) -> None:
    names = ["a\r\nx: y", "\u00fcber 100%", 'say "x"']
    sink = LoggerSink(receiver.url, {})
    sink.write([event(name) for name in names])
    sink.close()
    sent = [headers["ce-id"] for headers, _ in receiver.posts]
    assert sorted(map(unquote, sent)) == sorted(names)
    assert all(value.isascii() and " " not in value and '"' not in value for value in sent)


def test_what_is_refused_is_sent_once_and_the_rest_is_taken(receiver: Receiver) -> None:
    receiver.answers = [500]
    sink = LoggerSink(receiver.url, {})
    with pytest.raises(SinkError, match="/events answered 500") as caught:
        sink.write([event(str(number)) for number in range(20)])
    sink.close()
    assert caught.value.taken == 19
    assert len(receiver.posts) == 20


def test_a_receiver_that_is_not_there_is_named() -> None:
    sink = LoggerSink("http://127.0.0.1:1/events", {})
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:1/events") as caught:
        sink.write([event("a"), event("b")])
    sink.close()
    assert caught.value.taken == 0
