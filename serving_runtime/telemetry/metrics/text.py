"""Metrics page in Prometheus' text format 0.0.4."""

import math
from collections.abc import Iterable, Iterator, Mapping

from serving_runtime.telemetry.metrics.families import Buckets, Family, SummaryValues
from serving_runtime.telemetry.metrics.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(families: Iterable[Family]) -> bytes:
    """Return the page."""
    return b"".join(whole(family, [samples(family)]) for family in families)


def whole(family: Family, parts: Iterable[bytes]) -> bytes:
    """Return a family with the samples in these parts, in place of its own."""
    head = f"# HELP {family.name} {family.text}\n# TYPE {family.name} {family.kind}\n".encode()
    return b"".join((head, *parts))


def samples(family: Family) -> bytes:
    """Return the samples of a family, as a part for `whole`."""
    return "".join(f"{line}\n" for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    for labels, value in family.samples:
        if isinstance(value, Histogram):
            yield from _histogram(family.name, labels, value)
        elif isinstance(value, Buckets):
            yield from _buckets(family.name, labels, value.edges, value.counts, value.total)
        elif isinstance(value, SummaryValues):
            yield from _summary(family.name, labels, value)
        else:
            yield f"{family.name}{_shown(labels)} {number(value)}"


def _histogram(name: str, labels: Mapping[str, str], histogram: Histogram) -> Iterator[str]:
    return _buckets(name, labels, histogram.layout.edges, histogram.classic(), histogram.sum)


def _buckets(
    name: str, labels: Mapping[str, str], edges: Iterable[float], counts: Iterable[int], all_values: float
) -> Iterator[str]:
    total = 0
    for edge, count in zip((*edges, math.inf), counts, strict=True):
        total += count
        yield f"{name}_bucket{_shown({**labels, 'le': number(edge)})} {total}"
    yield f"{name}_sum{_shown(labels)} {number(all_values)}"
    yield f"{name}_count{_shown(labels)} {total}"


def _summary(name: str, labels: Mapping[str, str], values: SummaryValues) -> Iterator[str]:
    summary = values.summary
    for rank, found_ns in zip(values.quantiles, summary.quantiles_ns(values.quantiles), strict=True):
        yield f"{name}{_shown({**labels, 'quantile': number(rank)})} {number(found_ns / 1000)}"
    yield f"{name}_sum{_shown(labels)} {number(summary.sum_ns / 1000)}"
    yield f"{name}_count{_shown(labels)} {summary.count}"


def _shown(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
