"""Metrics page in Prometheus' protobuf format, which carries native histograms beside the classic buckets.

Served to scrapers whose Accept header prefers it, as Prometheus does once its native histograms are on. Message
layout: io.prometheus.client.MetricFamily, each after its length as a varint.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from serving_runtime import proto
from serving_runtime.telemetry.metrics.families import Buckets, Family, SummaryValues, Value
from serving_runtime.telemetry.metrics.histogram import NATIVE_SCHEMA, ZERO_THRESHOLD, Histogram

MEDIA_TYPE = "application/vnd.google.protobuf"
CONTENT_TYPE = f"{MEDIA_TYPE}; proto=io.prometheus.client.MetricFamily; encoding=delimited"

_MetricFamily = proto.message("io.prometheus.client.MetricFamily")
_TYPES = {"counter": 0, "gauge": 1, "summary": 2, "histogram": 4}


def render(families: Iterable[Family]) -> bytes:
    """Return the page."""
    return b"".join(whole(family, [samples(family)]) for family in families)


def whole(family: Family, parts: Iterable[bytes]) -> bytes:
    """Return a family with the metrics in these parts, in place of its own; empty for one without metrics."""
    metrics = b"".join(parts)  # concatenated messages are one with the fields of all
    if not metrics:  # readers refuse it
        return b""
    head = _MetricFamily(name=family.name, help=family.text, type=_TYPES[family.kind]).SerializeToString()
    return b"".join((_varint(len(head) + len(metrics)), head, metrics))


def samples(family: Family) -> bytes:
    """Return the metrics of a family, as a part for `whole`."""
    message = _MetricFamily()
    for labels, value in family.samples:
        metric = message.metric.add()
        for name, label in labels.items():
            metric.label.add(name=name, value=label)
        _fill(metric, family.kind, value)
    content: bytes = message.SerializeToString()
    return content


def wanted(accept: str) -> bool:
    """Return whether an Accept header prefers this format to text (RFC 9110, 12.5.1)."""
    ours = other = 0.0
    for item in accept.lower().split(","):
        media, *rest = [part.strip() for part in item.split(";")]
        parameters = dict(part.partition("=")[::2] for part in rest)
        weight = _weight(parameters.get("q", "1"))
        if media == MEDIA_TYPE:
            form = (parameters.get("proto"), parameters.get("encoding"))
            if form == ("io.prometheus.client.metricfamily", "delimited"):
                ours = max(ours, weight)
        elif media in ("text/plain", "text/*", "*/*"):
            other = max(other, weight)
    return ours > 0 and ours >= other


def spans(positive: Mapping[int, int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the spans (offset, length) and deltas of native buckets; gaps of one or two buckets are filled with 0."""
    found: list[tuple[int, int]] = []
    deltas: list[int] = []
    end = before = 0
    for bucket in sorted(positive):
        gap = bucket - end
        if found and gap <= 2:
            for _ in range(gap):
                deltas.append(-before)
                before = 0
            found[-1] = found[-1][0], found[-1][1] + gap + 1
        else:
            found.append((gap, 1))
        deltas.append(positive[bucket] - before)
        before, end = positive[bucket], bucket + 1
    return found, deltas


def _fill(metric: Any, kind: str, value: Value) -> None:
    if isinstance(value, Histogram):
        _fill_histogram(metric.histogram, value)
    elif isinstance(value, Buckets):
        total = 0
        for edge, count in zip((*value.edges, math.inf), value.counts, strict=True):
            total += count
            metric.histogram.bucket.add(upper_bound=edge, cumulative_count=total)
        metric.histogram.sample_count, metric.histogram.sample_sum = total, value.total
    elif isinstance(value, SummaryValues):
        summary = value.summary
        metric.summary.sample_count, metric.summary.sample_sum = summary.count, summary.sum_ns / 1000
        for rank, found_ns in zip(value.quantiles, summary.quantiles_ns(value.quantiles), strict=True):
            metric.summary.quantile.add(quantile=rank, value=found_ns / 1000)
    elif kind == "counter":
        metric.counter.value = value
    else:
        metric.gauge.value = value


def _fill_histogram(message: Any, histogram: Histogram) -> None:
    total = 0
    for edge, count in zip((*histogram.layout.edges, math.inf), histogram.classic(), strict=True):
        total += count
        message.bucket.add(upper_bound=edge, cumulative_count=total)
    message.sample_count, message.sample_sum = total, histogram.sum
    native = histogram.native()
    message.schema, message.zero_threshold, message.zero_count = NATIVE_SCHEMA, ZERO_THRESHOLD, native.zero
    found, deltas = spans(native.positive)
    for offset, length in found or [(0, 0)]:  # an empty span marks an empty histogram as native
        message.positive_span.add(offset=offset, length=length)
    message.positive_delta.extend(deltas)


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _varint(number: int) -> bytes:
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)
