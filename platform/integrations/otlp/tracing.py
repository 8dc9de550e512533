"""Spans of the control plane, sent to a collector by OTLP over HTTP (OpenTelemetry: trace SDK).

    web request ── task that it caused ── turn of the reconciler ── calls to API servers, Prometheus, webhooks

Without a collector nothing of OpenTelemetry is imported, and `span` only yields. A span begun with `if_kept` is the
root of a trace of its own, which is exported only where it is kept or fails: turns that change nothing are not. Within
a trace that a caller began it is an ordinary span.
"""

import atexit
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from serving_runtime.shared.otlp import ReportedExporter, traces_url

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

_EXPORT_TIMEOUT_S = 5
_MOST_HELD = 200
"""Spans of one trace that wait until it is known whether it is kept; further ones are dropped."""

INTERNAL, SERVER, CLIENT, CONSUMER = "INTERNAL", "SERVER", "CLIENT", "CONSUMER"
Value = str | int | bool


class Span:
    """The span of a block; does nothing where no collector is set."""

    def set(self, name: str, value: Value) -> None:
        """Set an attribute."""

    def rename(self, name: str) -> None:
        """Replace the name."""

    def fail(self, why: str) -> None:
        """Mark it as failed; the trace is kept."""

    def keep(self) -> None:
        """Export the trace, where it was begun with `if_kept`."""


class Tracing:
    """Traces of one process; `integrations.otlp.tracing.of_process` is the one that the code uses."""

    def __init__(self) -> None:
        self._spans: _Spans | None = None

    @property
    def is_on(self) -> bool:
        return self._spans is not None

    def start(self, endpoint: str, service: str) -> None:
        """Send spans from now on; does nothing where the endpoint is empty.

        Args:
            endpoint: the base address of the collector.
            service: what the spans' resource names the process.

        Raises:
            ValueError: the endpoint is no such address.
        """
        if endpoint and self._spans is None:
            self._spans = _Spans(traces_url(endpoint), service)

    def stop(self) -> None:
        """Send what is left, and no further spans."""
        if self._spans is not None:
            self._spans.close()
            self._spans = None

    @contextmanager
    def span(
        self,
        name: str,
        kind: str = INTERNAL,
        attributes: Mapping[str, Value] | None = None,
        *,
        caller: Mapping[str, str] | None = None,
        if_kept: bool = False,
    ) -> Iterator[Span]:
        """Record the block as a span; an exception that leaves it marks it as failed.

        Args:
            caller: headers with the W3C trace context of the caller; None continues the current span.
            if_kept: export it only where it is kept or fails, unless a caller's trace contains it.
        """
        if self._spans is None:
            yield _NOTHING
            return
        with self._spans.begun(name, kind, attributes or {}, caller, if_kept=if_kept) as found:
            yield found

    @contextmanager
    def call(self, name: str, attributes: Mapping[str, Value]) -> Iterator[Span]:
        """Record an outgoing call; only within a span, so that calls in the background make no traces."""
        if self._spans is None or not self._spans.ids()[0]:
            yield _NOTHING
            return
        with self._spans.begun(name, CLIENT, attributes, None, if_kept=False) as found:
            yield found

    def headers(self) -> dict[str, str]:
        """Return the W3C trace context of the current span as headers; empty without one that a caller may continue."""
        return {} if self._spans is None else self._spans.headers()

    def ids(self) -> tuple[str, str]:
        """Return trace id and span id of the current span, in hexadecimal; empty without one."""
        return ("", "") if self._spans is None else self._spans.ids()


class _Spans:
    """OpenTelemetry's tracer, which this imports."""

    def __init__(self, url: str, service: str) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - only where a collector is set
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self.trace = trace
        self.held = _HeldTraces()
        self._propagator = TraceContextTextMapPropagator()
        self._exporter = ReportedExporter(OTLPSpanExporter(endpoint=url, timeout=_EXPORT_TIMEOUT_S), url)
        self._provider = TracerProvider(resource=Resource.create({"service.name": service}), shutdown_on_exit=False)
        self._provider.add_span_processor(self.held.before(BatchSpanProcessor(cast(Any, self._exporter))))
        self._tracer = self._provider.get_tracer("fairlead")
        atexit.register(self.close)

    def close(self) -> None:
        self._exporter.close_soon()
        self._provider.shutdown()
        atexit.unregister(self.close)

    @contextmanager
    def begun(
        self, name: str, kind: str, attributes: Mapping[str, Value], caller: Mapping[str, str] | None, *, if_kept: bool
    ) -> Iterator[Span]:
        context = None if caller is None else self._propagator.extract(caller, context=self._nothing())
        current = self.trace.get_current_span(context).get_span_context()
        holds = if_kept and (not current.is_valid or self.held.has(current.trace_id))
        span = self._tracer.start_span(
            name,
            context=self._nothing() if holds else context,
            kind=self.trace.SpanKind[kind],
            attributes=attributes,
        )
        if holds and span.is_recording():
            self.held.begin(span.get_span_context().trace_id)
        with self.trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            found = _Recorded(self, span)
            try:
                yield found
            except Exception as error:
                found.fail(f"{type(error).__name__}: {error}")
                raise

    def _nothing(self) -> Any:
        return self.trace.set_span_in_context(self.trace.INVALID_SPAN)

    def headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if not self.held.has(self.trace.get_current_span().get_span_context().trace_id):
            self._propagator.inject(found)
        return found

    def ids(self) -> tuple[str, str]:
        context = self.trace.get_current_span().get_span_context()
        if not context.is_valid:
            return "", ""
        return self.trace.format_trace_id(context.trace_id), self.trace.format_span_id(context.span_id)


class _Recorded(Span):
    def __init__(self, spans: _Spans, span: Any) -> None:
        self._spans, self._span = spans, span

    def set(self, name: str, value: Value) -> None:
        self._span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, why: str) -> None:
        self._span.set_status(self._spans.trace.StatusCode.ERROR, why)
        self.keep()

    def keep(self) -> None:
        self._spans.held.keep(self._span.get_span_context().trace_id)


class _HeldTraces:
    """Ended spans of traces of which is not yet known whether they are kept, by trace id."""

    def __init__(self) -> None:
        self._by_trace: dict[int, list[ReadableSpan]] = {}
        self._kept: set[int] = set()

    def has(self, trace_id: int) -> bool:
        return trace_id in self._by_trace

    def begin(self, trace_id: int) -> None:
        self._by_trace[trace_id] = []

    def keep(self, trace_id: int) -> None:
        if trace_id in self._by_trace:
            self._kept.add(trace_id)

    def ended(self, span: "ReadableSpan") -> "list[ReadableSpan]":
        """Return the spans to export now that this one has ended."""
        context = span.get_span_context()
        trace_id = context.trace_id if context is not None else 0
        held = self._by_trace.get(trace_id)
        if held is None:
            return [span]
        if span.parent is not None:
            if len(held) < _MOST_HELD:
                held.append(span)
            return []
        del self._by_trace[trace_id]
        if trace_id not in self._kept:
            return []
        self._kept.remove(trace_id)
        return [*held, span]

    def before(self, following: "SpanProcessor") -> "SpanProcessor":
        """Return a span processor that passes on to another what is kept."""
        from opentelemetry.sdk.trace import SpanProcessor  # noqa: PLC0415

        held = self

        class Kept(SpanProcessor):
            def on_end(self, span: "ReadableSpan") -> None:
                for each in held.ended(span):
                    following.on_end(each)

            def shutdown(self) -> None:
                following.shutdown()

            def force_flush(self, timeout_millis: int = 30000) -> bool:
                return following.force_flush(timeout_millis)

        return Kept()


_NOTHING = Span()
of_process = Tracing()


class TraceIdsFilter(logging.Filter):
    """Puts `trace_id` and `span_id` of the current span on every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a record."""
        record.trace_id, record.span_id = of_process.ids()
        return True
