"""Receivers of batches: that refuse, that are away for a while, that ask for a token which is replaced."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving_runtime.telemetry.tap.posting import HttpSink
from serving_runtime.telemetry.tap.sinks import Event, SinkError
from tests.serving_runtime._support.event_receiver import Receiver, receiving


def events(*ids: str) -> list[Event]:
    return [{"id": name, "data": "x" * 50} for name in ids]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def test_a_receiver_gets_batches(receiver: Receiver) -> None:
    sink = HttpSink(receiver.url)
    sink.write(events("a", "b"))
    sink.close()
    ((headers, body),) = receiver.posts
    assert headers["content-type"] == "application/cloudevents-batch+json"
    assert json.loads(body) == events("a", "b")
    assert "authorization" not in headers


def test_what_a_receiver_refuses_is_given_up_at_once_with_its_status(receiver: Receiver) -> None:
    receiver.answers = [413]
    sink = HttpSink(receiver.url)
    with pytest.raises(SinkError, match="/events answered 413"):
        sink.write(events("a"))
    sink.close()
    assert len(receiver.posts) == 1


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_what_a_receiver_cannot_take_now_is_sent_again(receiver: Receiver, status: int) -> None:
    receiver.answers = [status, status]
    sink = HttpSink(receiver.url)
    sink.write(events("a"))
    sink.close()
    assert [json.loads(body) for _, body in receiver.posts] == [events("a")] * 3


def test_a_receiver_that_takes_nothing_for_too_long_is_named(receiver: Receiver) -> None:
    receiver.answers = [503]
    sink = HttpSink(receiver.url, patience_s=0)
    with pytest.raises(SinkError, match="/events answered 503"):
        sink.write(events("a"))
    sink.close()


def test_a_receiver_that_is_not_there_is_named() -> None:
    sink = HttpSink("http://127.0.0.1:1/events", patience_s=0)
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:1/events"):
        sink.write(events("a"))
    sink.close()


def test_the_token_is_read_again_for_each_batch(receiver: Receiver, tmp_path: Path) -> None:
    token = tmp_path / "token"
    sink = HttpSink(receiver.url, token, patience_s=0)
    for text in ("first\n", "second"):
        token.write_text(text)
        sink.write(events("a"))
    assert [headers["authorization"] for headers, _ in receiver.posts] == ["Bearer first", "Bearer second"]
    token.unlink()
    with pytest.raises(SinkError, match="No such file"):
        sink.write(events("a"))
    sink.close()
