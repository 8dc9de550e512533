"""Incremental rendering of the metrics page: each model's samples are rendered separately and cached until they change.

A page of 1,000 models is some 9 MB of text, which takes a quarter of a second and more to render. The pieces are small
enough that other work runs between them; the samples of one model are all of one moment.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from serving_runtime.telemetry.metrics.families import Family, ModelSeries, model_families
from serving_runtime.telemetry.metrics.settings import MetricsSettings

Answer: TypeAlias = tuple[str, list[bytes]]
"""A content type, and the page in order."""

PIECE = 128
"""Work in a piece, as the count of models checked."""

RENDERING = 64
"""Work of one model that is rendered, in the same unit."""


class Form(Protocol):
    """`text` or `protobuf`."""

    @property
    def CONTENT_TYPE(self) -> str: ...  # noqa: N802 - of a module

    def samples(self, family: Family) -> bytes: ...
    def whole(self, family: Family, parts: Iterable[bytes]) -> bytes: ...


class Page:
    """The page in one form, for successive scrapes.

    Args:
        form: whose `samples` are the parts of its `whole`.
    """

    def __init__(self, form: Form, settings: MetricsSettings) -> None:
        self._form = form
        self._settings = settings
        self._families = tuple(model_families((), settings))
        self._kept: dict[tuple[str, str], tuple[Any, tuple[bytes, ...]]] = {}

    def pieces(
        self, every: Sequence[ModelSeries], others: Callable[[], Iterable[Family]]
    ) -> Generator[None, None, Answer]:
        """Yield after each piece; returns the page.

        Args:
            every: of all current models; cached samples of others are dropped.
            others: returns families that are not of models.
        """
        kept: dict[tuple[str, str], tuple[Any, tuple[bytes, ...]]] = {}
        done = 0
        for series in every:
            key, mark = (series.model, series.version), _mark(series)
            known = self._kept.get(key)
            if known is None or mark is None or known[0] != mark:
                known = mark, self._rendered(series)
                done += RENDERING
            kept[key] = known
            done += 1
            if done >= PIECE:
                done = 0
                yield
        self._kept = kept
        chunks = []
        for place, family in enumerate(self._families):
            yield
            chunks.append(self._form.whole(family, [parts[place] for _, parts in kept.values()]))
        yield
        chunks += [self._form.whole(family, [self._form.samples(family)]) for family in others()]
        return self._form.CONTENT_TYPE, [chunk for chunk in chunks if chunk]

    def _rendered(self, series: ModelSeries) -> tuple[bytes, ...]:
        return tuple([self._form.samples(family) for family in model_families((series,), self._settings)])


def _mark(series: ModelSeries) -> Any:
    """Return a value that changes with any sample of a model; None where samples change by themselves."""
    found = series.statistics
    if found.summaries is not None and found.accepted:  # a window of the last minute
        return None
    first = found.first_response
    return (
        found.accepted, found.finished, found.executions, found.inferences, found.failed, found.request_latency.sum_ns,
        found.compute_latency.sum_ns, found.queue_ns, found.input_ns, found.infer_ns, found.output_ns, found.cache_hits,
        found.cache_misses, found.cache_hit_ns, found.cache_miss_ns, first.sum_ns if first is not None else 0,
        series.pending, series.memory_bytes, *series.tags.items(),
    )  # fmt: skip
