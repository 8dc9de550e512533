"""Trace sampler: decides which requests are traced, and exports them when they have ended.

With tracing off nothing of this is in the request path: see engine.serving.observers.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from serving_runtime.common.request import RequestContext
from serving_runtime.telemetry.tracing.settings import (
    OPENTELEMETRY,
    TENSORS,
    TraceOptions,
    TraceSettings,
    changed,
    check_mode,
    shown,
)
from serving_runtime.telemetry.tracing.trace import Trace, sampled_by_caller


class Sink(Protocol):
    """Exporter of traces; must neither raise nor block."""

    def write(self, trace: Trace, settings: TraceSettings) -> None: ...

    def close(self) -> None: ...


class _Sampler:
    """Settings, the count of requests seen, and the remaining count to trace."""

    def __init__(self, settings: TraceSettings) -> None:
        self.settings = settings
        self._seen = 0
        self._left = settings.count

    def change(self, settings: TraceSettings) -> None:
        if settings.count != self.settings.count:
            self._left = settings.count
        self.settings = settings

    def takes(self, *, forced: bool) -> bool:
        """Return whether to trace one more request; `forced` where its caller traces it already."""
        settings = self.settings
        if not settings.levels or not self._left:
            return False
        self._seen += 1
        if not forced and self._seen % settings.rate:
            return False
        if self._left > 0:
            self._left -= 1
        return True


class Tracer:
    """Traces requests by the settings of all models and of single ones.

    Attributes:
        on_change: called after the settings have changed.
    """

    def __init__(self, options: TraceOptions, sink: Sink) -> None:
        self.options = options
        self.on_change: Callable[[], None] = lambda: None
        self._sink = sink
        self._common = _Sampler(options.settings)
        self._changes: dict[str, dict[str, Any]] = {}
        self._by_model: dict[str, _Sampler] = {}
        self._number = 0

    @property
    def active(self) -> bool:
        """Return whether any request may be traced."""
        return any(sampler.settings.levels for sampler in (self._common, *self._by_model.values()))

    def shown(self, model: str = "") -> dict[str, str | list[str]]:
        """Return the settings of a model, or of all for no model."""
        return shown(self._sampler(model).settings, self.options)

    def update(self, changes: Mapping[str, Any], model: str = "") -> None:
        """Change settings of a model, or of all for no model; raises InvalidArgument, changing nothing."""
        if not model:
            common = changed(self._common.settings, self.options.settings, changes)
            check_mode(self.options, common)
            self._common.change(common)
        else:
            mine = {**self._changes.get(model, {}), **changes}
            check_mode(self.options, changed(self._common.settings, self._common.settings, mine))
            self._changes[model] = {name: value for name, value in mine.items() if value is not None}
            self._by_model.setdefault(model, _Sampler(self._common.settings))
        for name, own in self._changes.items():  # what a model does not override follows the common settings
            self._by_model[name].change(changed(self._common.settings, self._common.settings, own))
        for name in [name for name, own in self._changes.items() if not own]:
            del self._changes[name], self._by_model[name]
        self.on_change()

    def begin(self, model: str, version: str, context: RequestContext | None) -> Trace | None:
        """Return a trace for a sampled request, else None."""
        asked = sampled_by_caller(context) if self.options.mode == OPENTELEMETRY else None
        if asked is False or not self._sampler(model).takes(forced=asked is True):
            return None
        self._number += 1
        trace = Trace(self._number, model, version, context or RequestContext())
        if TENSORS in self._sampler(model).settings.levels:
            trace.tensors = []
        return trace

    def end(self, trace: Trace, version: str, error: str = "") -> None:
        """Export a finished trace."""
        trace.end(version, error)
        self._sink.write(trace, self._sampler(trace.model).settings)

    def close(self) -> None:
        """Export pending traces."""
        self._sink.close()

    def _sampler(self, model: str) -> _Sampler:
        return self._by_model.get(model, self._common)
