"""OpenTelemetry exporter: traces as spans, sent to a collector by OTLP over HTTP from a thread of the SDK.

InferRequest                    continues the caller's trace where it sent a W3C traceparent
|-- queue                       one pair per model that ran
`-- compute
"""

from typing import Any, cast

from serving_runtime import __version__
from serving_runtime.shared.otlp import ReportedExporter
from serving_runtime.telemetry.tracing.settings import TraceOptions, TraceSettings
from serving_runtime.telemetry.tracing.trace import Step, Trace

_EXPORT_TIMEOUT_S = 5
"""Of one batch of spans; a stopping server waits for its last one."""

_ARGUMENTS = {
    "bsp_max_queue_size": "max_queue_size",
    "bsp_schedule_delay": "schedule_delay_millis",
    "bsp_max_export_batch_size": "max_export_batch_size",
}


class OtlpSink:
    """Makes spans of finished traces; the SDK drops spans that a slow collector does not accept."""

    def __init__(self, options: TraceOptions, server: str) -> None:
        """Start the exporter; raises ImportError where the extra `tracing` is not installed."""
        from opentelemetry import trace  # noqa: PLC0415 - an extra
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        resource = Resource.create({"service.name": server, "service.version": __version__, **options.resource})
        session = None
        if options.through:
            from serving_runtime.telemetry.tracing.unix_session import session_through  # noqa: PLC0415 - of the extra

            session = session_through(options.through)
        exporter = OTLPSpanExporter(endpoint=options.url, timeout=_EXPORT_TIMEOUT_S, session=session)
        self._exporter = ReportedExporter(exporter, options.url)
        batching: dict[str, Any] = {_ARGUMENTS[name]: value for name, value in options.batching.items()}
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(cast(Any, self._exporter), **batching))
        self._tracer = self._provider.get_tracer("fairlead-serve", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._trace = trace

    def write(self, trace: Trace, _settings: TraceSettings) -> None:
        context = trace.context
        carrier = {"traceparent": context.traceparent, "tracestate": context.tracestate}
        parent = self._propagator.extract({name: value for name, value in carrier.items() if value})
        attributes = {"triton.model_name": trace.model, "triton.model_version": trace.version}
        if context.request_id:
            attributes["triton.request_id"] = context.request_id
        span = self._tracer.start_span(
            "InferRequest",
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
            start_time=trace.began_ns + trace.epoch_ns,
        )
        if trace.error:
            span.set_status(self._trace.StatusCode.ERROR, trace.error)
        within = self._trace.set_span_in_context(span)
        for step in trace.steps:
            self._write_step(step, within, trace.epoch_ns)
        span.end(trace.ended_ns + trace.epoch_ns)

    def close(self) -> None:
        """Send pending spans."""
        self._exporter.close_soon()
        self._provider.shutdown()

    def _write_step(self, step: Step, within: Any, epoch_ns: int) -> None:
        attributes = {"triton.model_name": step.model, "triton.model_version": step.version}
        timing = step.timing
        for name, began_ns, ended_ns in (
            ("queue", step.arrived_ns, timing.started),
            ("compute", timing.started, timing.output_done),
        ):
            span = self._tracer.start_span(name, context=within, attributes=attributes, start_time=began_ns + epoch_ns)
            if name == "compute":
                span.add_event("input done", timestamp=timing.input_done + epoch_ns)
                span.add_event("infer done", timestamp=timing.infer_done + epoch_ns)
            span.end(ended_ns + epoch_ns)
