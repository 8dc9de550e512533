"""The metrics page in pieces: what one rendering would be, a few models at a time, idle ones from before."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from google.protobuf.internal.decoder import _DecodeVarint32  # type: ignore[attr-defined]

from serving_runtime import proto
from serving_runtime.common.errors import FailureReason
from serving_runtime.protocol.http.api.metrics import InTurns
from serving_runtime.protocol.http.wire.message import Response
from serving_runtime.scheduler import counting
from serving_runtime.telemetry.metrics import protobuf, text
from serving_runtime.telemetry.metrics.families import Family, ModelSeries, families, process_families
from serving_runtime.telemetry.metrics.page import PIECE, RENDERING, Page
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics, SummarisedStatistics

FORMS = pytest.mark.parametrize("form", [text, protobuf], ids=["text", "protobuf"])
ALL = MetricsSettings(counter_latencies=True, summary_latencies=True, histogram_latencies=True)


def asked(statistics: ModelStatistics) -> ModelStatistics:
    statistics.accepted += 1
    statistics.record_batch([1000], 1, BatchTiming(2000, 3000, 4000, 5000))
    return statistics


def models(count: int) -> list[ModelSeries]:
    return [ModelSeries(f"m{number}", "1", asked(ModelStatistics()), 0) for number in range(count)]


def run(pieces: Generator[None, None, tuple[str, list[bytes]]]) -> tuple[int, bytes]:
    """Return in how many pieces it was done, and the page."""
    done = 1
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return done, b"".join(end.value[1])
        done += 1


def others() -> list[Family]:
    return list(process_families(None))


def parsed(form: Any, page: bytes) -> Any:
    """Return the page's families with their samples, as far as they have an order of no meaning."""
    if form is text:
        return page.decode().splitlines()
    kind, found, at = proto.message("io.prometheus.client.MetricFamily"), [], 0
    while at < len(page):
        size, at = _DecodeVarint32(page, at)
        found.append(kind.FromString(page[at : at + size]))
        at += size
    return found


@FORMS
@pytest.mark.parametrize("settings", [MetricsSettings(), ALL], ids=["as it is", "with all"])
def test_the_pieces_are_the_page(form: Any, settings: MetricsSettings) -> None:
    failed = asked(SummarisedStatistics())
    failed.record_failure(FailureReason.OTHER, 5)
    every = [
        *models(3),
        ModelSeries("new", "2", ModelStatistics(), 0, {"team": 'a"'}),
        ModelSeries("f", "1", failed, 4),
    ]
    _, page = run(Page(form, settings).pieces(every, others))
    assert parsed(form, page) == parsed(form, form.render(families(every, settings)))
    _, empty = run(Page(form, settings).pieces([], others))
    assert parsed(form, empty) == parsed(form, form.render(families([], settings)))


class Counted:
    """A form that counts the families of models that it renders."""

    CONTENT_TYPE = text.CONTENT_TYPE
    whole = staticmethod(text.whole)

    def __init__(self) -> None:
        self.rendered: dict[str, int] = {}

    def samples(self, family: Family) -> bytes:
        for labels, _ in family.samples[:1]:
            name = str(labels.get("model", ""))
            self.rendered[name] = self.rendered.get(name, 0) + 1
        return text.samples(family)


def test_many_models_take_many_pieces_and_those_that_rest_are_not_rendered_again() -> None:
    form, every = Counted(), models(1000)
    page = Page(form, MetricsSettings())
    first, before = run(page.pieces(every, others))
    assert first >= 1000 * RENDERING / PIECE, "so that others have their turns"
    assert len(form.rendered) == 1001, "each of them, and the process"
    form.rendered.clear()
    again, after = run(page.pieces(every, others))
    assert set(form.rendered) == {""}
    assert after == before
    assert again < first / 5
    form.rendered.clear()
    asked(every[7].statistics)
    _, changed = run(page.pieces(every, others))
    assert set(form.rendered) == {"", "m7"}
    assert b'nv_inference_request_success{model="m7",version="1"} 2\n' in changed
    assert changed.count(b'{model="m8",version="1"} 1\n') == before.count(b'{model="m8",version="1"} 1\n')


def test_whatever_is_counted_is_shown_and_models_that_go_are_forgotten() -> None:
    page, statistics = Page(text, MetricsSettings()), ModelStatistics()
    series = ModelSeries("m", "1", statistics, 0)
    seen = {run(page.pieces([series], others))[1]}

    def differs(what: str, now: ModelSeries = series) -> None:
        found = run(page.pieces([now], others))[1]
        assert found not in seen, what
        seen.add(found)

    statistics.accepted += 1
    differs("in flight")
    statistics.record_batch([1000], 1, BatchTiming(2000, 3000, 4000, 5000))
    differs("a batch")
    counting.refuse(statistics, FailureReason.OTHER)
    differs("a refusal")
    statistics.record_cache_miss(2000)
    differs("a miss of the cache")
    statistics.record_cache_hit(2000, 3000)
    differs("a hit of the cache")
    differs("what waits", ModelSeries("m", "1", statistics, 5))
    differs("memory", ModelSeries("m", "1", statistics, 0, {}, 7))
    differs("a tag", ModelSeries("m", "1", statistics, 0, {"team": "a"}))
    assert b'"m"' not in run(page.pieces([], others))[1]
    assert not page._kept


async def test_the_event_loop_has_a_turn_between_any_two_pieces() -> None:
    replies: list[Response] = []
    turns: list[int] = []
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def done(response: Response) -> None:
        replies.append(response)
        over.set()

    def turn() -> None:
        turns.append(len(replies))
        if not replies:
            loop.call_soon(turn)

    InTurns(Page(text, MetricsSettings()).pieces(models(200), others), done).begun()
    turn()
    async with asyncio.timeout(60):
        await over.wait()
    assert len(turns) > 200 * RENDERING / PIECE
    assert replies[0].length == sum(map(len, replies[0].chunks))
    assert replies[0].status == 200


async def test_a_page_that_nobody_waits_for_is_not_made_and_a_mistake_is_answered() -> None:
    replies: list[Response] = []
    rendering = InTurns(Page(text, MetricsSettings()).pieces(models(200), others), replies.append).begun()
    await asyncio.sleep(0)
    rendering.cancel()
    for _ in range(300):
        await asyncio.sleep(0)
    assert replies == []

    def broken() -> list[Family]:
        raise RuntimeError("a mistake")

    answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    InTurns(Page(text, MetricsSettings()).pieces([], broken), answered.set_result).begun()
    async with asyncio.timeout(60):
        assert (await answered).status == 500
