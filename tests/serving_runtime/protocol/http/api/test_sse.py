"""Responses as events: the order of things between the engine, the stream and the connection."""

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import BackendError
from serving_runtime.common.request import InferResponse, Tensor
from serving_runtime.protocol.http.api.generate import text_of
from serving_runtime.protocol.http.api.sse import EventStream
from serving_runtime.protocol.http.wire.message import Response
from serving_runtime.scheduler.job import Job

pytestmark = pytest.mark.feature("E17")


class Recorded(Job):
    """A job that notes what it is told."""

    def __init__(self) -> None:
        super().__init__((), 1, None, lambda result: None, 0)
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def cancel(self) -> None:
        self.told.append("cancel")


class Line:
    """A connection's side: takes the answer and its pieces."""

    buffered_bytes = 0

    def __init__(self, *, head_only: bool = False) -> None:
        self.answers: list[Response] = []
        self.sent: list[bytes] = []
        self._head_only = head_only

    def reply(self, response: Response) -> None:
        self.answers.append(response)
        if response.source is not None and not self._head_only:
            response.source.begin(self)

    def write(self, piece: bytes) -> None:
        self.sent.append(piece)

    def end(self) -> None:
        self.sent.append(b"end")


def response(value: float, *, final: bool = False) -> InferResponse:
    return InferResponse("m", "1", (Tensor("y", DATATYPES["FP32"], np.array([value], "f4")),), final=final)


def stream(line: Line, *, shows_empty_final: bool = False) -> tuple[EventStream, Recorded]:
    events, job = EventStream(line.reply, text_of, shows_empty_final=shows_empty_final), Recorded()
    events.job = job
    return events, job


def event(value: float) -> bytes:
    return b'data: {"model_name":"m","model_version":"1","y":%s}\n\n' % str(value).encode()


@pytest.mark.parametrize("last", ["empty", "full"])
def test_the_stream_ends_with_the_final_response(last: str) -> None:
    line = Line()
    events, job = stream(line)
    events.on_done(response(0.1))
    events.on_done(InferResponse("m", "1", ()) if last == "empty" else response(0.2, final=True))
    assert [answer.status for answer in line.answers] == [200]
    assert line.sent == [event(0.1), *([event(0.2)] if last == "full" else []), b"end"]
    assert job.told == []


def test_pausing_and_resuming_reach_the_job() -> None:
    line = Line()
    events, job = stream(line)
    events.on_done(response(1))
    events.pause()
    events.resume()
    assert job.told == ["pause", "resume"]


def test_a_response_without_a_text_form_ends_the_stream_and_the_job() -> None:
    line = Line()
    events, job = stream(line)
    events.on_done(response(1))
    events.on_done(response(float("nan")))
    assert line.sent[0] == event(1.0)
    assert b'data: {"error":"output \'y\' holds NaN' in line.sent[1]
    assert line.sent[2:] == [b"end"]
    assert job.told == ["cancel"]


def test_an_error_at_once_is_no_stream_and_a_later_one_ends_it() -> None:
    line = Line()
    stream(line)[0].on_done(BackendError("broken"))
    assert [(answer.status, answer.source) for answer in line.answers] == [(500, None)]
    events, _ = stream(line)
    events.on_done(response(1))
    events.on_done(BackendError("broken"))
    assert line.sent[1:] == [b'data: {"error":"broken"}\n\n', b"end"]


def test_nobody_to_write_to_stops_the_job() -> None:
    line = Line(head_only=True)
    events, job = stream(line)
    events.on_done(response(1))
    assert job.told == ["cancel"]
    assert line.sent == []
