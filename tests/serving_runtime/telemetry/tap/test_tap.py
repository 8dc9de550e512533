"""The tap writes what it can, drops what it cannot, and never waits."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.request import InferRequest, InferResponse, RequestContext, Tensor
from serving_runtime.telemetry.tap.share import Share
from serving_runtime.telemetry.tap.sinks import Event, Sink, SinkError
from serving_runtime.telemetry.tap.tap import RecordedEvents, Tap
from serving_runtime.telemetry.tap.writing import written

KILOBYTES_10 = Tensor("x", DATATYPES["UINT8"], np.zeros(10_000, np.uint8))
ANSWER = InferResponse("m", "1", ())


class Gate:
    """A sink that takes nothing until it is opened, and fails when told to."""

    gather_s = 0.0

    def __init__(self, *, opened: bool = True) -> None:
        self.opened = threading.Event()
        self.events: list[dict[str, Any]] = []
        self.refuses = False
        if opened:
            self.opened.set()

    def write(self, events: list[Event]) -> None:
        self.opened.wait(30)
        if self.refuses:
            raise SinkError("no room")
        self.events += [json.loads(written(event)) for event in events]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


@contextmanager
def tapping(
    sink: Sink,
    *,
    share: float = 1.0,
    max_pending_bytes: int = 1_000_000,
    recorded_events: RecordedEvents = RecordedEvents.ALL,
) -> Iterator[Tap]:
    tap = Tap(
        sink, source="/s", share=Share(share), max_pending_bytes=max_pending_bytes, recorded_events=recorded_events
    )
    yield tap
    tap.close()


def ask(tap: Tap, request_id: str, *answers: InferResponse) -> None:
    recording = tap.recording(InferRequest("m", "", (KILOBYTES_10,), context=RequestContext(request_id)))
    for answer in answers if recording is not None else ():
        recording.note(answer)


def test_a_request_is_told_once_and_its_answers_in_order() -> None:
    sink = Gate()
    with tapping(sink) as tap:
        ask(tap, "a", ANSWER._replace(final=False), ANSWER)
    assert [event["id"] for event in sink.events] == ["a:0", "a:1", "a:2"]
    assert tap.counts.written == 3


def test_only_the_share_is_recorded_and_ids_decide() -> None:
    first, second = Gate(), Gate()
    for sink in (first, second):
        with tapping(sink, share=0.3, max_pending_bytes=10**9) as tap:
            for number in range(300):
                ask(tap, f"request-{number}", ANSWER)
    ids = [event["requestid"] for event in first.events]
    assert ids == [event["requestid"] for event in second.events]
    assert 50 < len(set(ids)) < 140


def test_requests_without_an_id_are_recorded_under_one_of_their_own() -> None:
    sink = Gate()
    with tapping(sink) as tap:
        for _ in range(2):
            ask(tap, "", ANSWER)
    assert len({event["requestid"] for event in sink.events}) == 2


def test_a_slow_sink_costs_events_and_no_time() -> None:
    sink = Gate(opened=False)
    with tapping(sink, max_pending_bytes=100_000) as tap:
        for number in range(200):
            ask(tap, str(number), ANSWER)
        assert sink.events == []  # all were taken in without the sink
        assert tap.counts.dropped > 300
        sink.opened.set()
        until(lambda: tap.counts.written + tap.counts.dropped == 400)
        ask(tap, "later", ANSWER)
    assert sink.events[-1]["id"] == "later:1"


def test_a_sink_that_refuses_is_counted_and_asked_again() -> None:
    sink = Gate()
    with tapping(sink) as tap:
        sink.refuses = True
        ask(tap, "a", ANSWER)
        until(lambda: tap.counts.failed == 2)
        sink.refuses = False
        ask(tap, "b", ANSWER)
    assert [event["requestid"] for event in sink.events] == ["b", "b"]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.005)


def test_what_a_sink_keeps_back_is_handed_on_without_further_requests() -> None:
    class Keeping(Gate):
        flushed = 0

        def flush(self) -> None:
            self.flushed = len(self.events)

    sink = Keeping()
    with tapping(sink) as tap:
        ask(tap, "a", ANSWER)
        until(lambda: sink.flushed == 2)


def test_a_request_and_its_first_answer_are_written_together() -> None:
    class Batches(Gate):
        sizes: list[int] = []

        def write(self, events: list[Event]) -> None:
            super().write(events)
            self.sizes.append(len(events))

    sink = Batches()
    with tapping(sink, max_pending_bytes=10**9) as tap:
        for number in range(500):
            ask(tap, str(number), ANSWER)
        until(lambda: sum(sink.sizes) == 1000)
    assert all(size % 2 == 0 for size in sink.sizes)


def test_who_acts_on_the_share_is_told_when_it_comes_and_goes(tmp_path: Path) -> None:
    file = tmp_path / "share"
    tap = Tap(Gate(), source="/s", share=Share(1, file), max_pending_bytes=1000)
    seen: list[bool] = []
    tap.on_change.append(lambda: seen.append(tap.active))
    for text in ("0.5", "0.75", "0"):
        file.write_text(text)
        tap.look()
        tap.look()
    tap.close()
    assert seen == [True, False]


@pytest.mark.parametrize(
    ("recorded_events", "ids"),
    [
        (RecordedEvents.ALL, ["a:0", "a:1", "a:2"]),
        (RecordedEvents.REQUEST, ["a:0"]),
        (RecordedEvents.RESPONSE, ["a:1", "a:2"]),
    ],
)
def test_requests_answers_or_both_are_told(recorded_events: RecordedEvents, ids: list[str]) -> None:
    sink = Gate()
    with tapping(sink, recorded_events=recorded_events) as tap:
        ask(tap, "a", ANSWER._replace(final=False), ANSWER)
    assert [event["id"] for event in sink.events] == ids
    assert (tap.counts.written, tap.counts.dropped) == (len(ids), 0)


def test_a_sink_that_took_some_of_them_is_counted_by_what_it_took() -> None:
    class Half(Gate):
        def write(self, events: list[Event]) -> None:
            raise SinkError("one was refused", taken=len(events) - 1)

    with tapping(Half()) as tap:
        ask(tap, "a", ANSWER)
    assert (tap.counts.written, tap.counts.failed) == (1, 1)


def test_a_sink_that_wants_more_at_once_gets_what_comes_meanwhile() -> None:
    class Patient(Gate):
        gather_s = 30.0
        sizes: list[int] = []

        def write(self, events: list[Event]) -> None:
            super().write(events)
            self.sizes.append(len(events))

    sink = Patient()
    with tapping(sink, max_pending_bytes=10**9) as tap:
        for number in range(3):
            ask(tap, str(number), ANSWER)
    assert sink.sizes == [6]  # the end of the tap ends the waiting


def test_a_sink_that_wants_more_at_once_is_not_made_to_wait_for_more_than_enough() -> None:
    class Patient(Gate):
        gather_s = 30.0

    sink = Patient()
    with tapping(sink, max_pending_bytes=10**9) as tap:
        for number in range(200):  # of about 11 kB
            ask(tap, str(number), ANSWER)
        until(lambda: tap.counts.written > 0)
