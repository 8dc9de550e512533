"""The recorders of one server: the payload tap and the payload logger, both optional."""

from collections.abc import Callable, Iterator, Mapping

from serving_runtime.common.request import InferRequest
from serving_runtime.telemetry.metrics.families import Family, Value
from serving_runtime.telemetry.tap.tap import Recording, Tap, TapCounts

TAP_METRIC, LOGGER_METRIC = "fairlead_payload_tap_events_total", "fairlead_payload_logger_events_total"


class Taps:
    """The taps of a server, by the name of the metric that counts each one's events."""

    def __init__(self, taps: Mapping[str, Tap] | None = None) -> None:
        self._by_metric = dict(taps or {})

    def __bool__(self) -> bool:
        return bool(self._by_metric)

    def __iter__(self) -> Iterator[Tap]:
        return iter(self._by_metric.values())

    @property
    def active(self) -> bool:
        """Return whether any request is recorded."""
        return any(tap.active for tap in self)

    def on_change(self, notify: Callable[[], None]) -> None:
        """Have `notify` called after `active` may have changed."""
        for tap in self:
            tap.on_change.append(notify)

    def look(self) -> None:
        """Check whether a share was changed from outside."""
        for tap in self:
            tap.look()

    def recordings(self, request: InferRequest) -> list[Recording]:
        """Return the recorder of a request's responses."""
        found = [tap.recording(request) for tap in self if tap.active]
        return [recording for recording in found if recording is not None]

    def families(self) -> list[Family]:
        """Return the metric of each tap."""
        return [events_family(name, tap.counts) for name, tap in self._by_metric.items()]

    def close(self) -> None:
        """Write pending events, for a few seconds at most."""
        for tap in self:
            tap.close()


def events_family(name: str, counts: TapCounts) -> Family:
    """Return the metric of a tap."""
    results = (("written", counts.written), ("dropped", counts.dropped), ("failed", counts.failed))
    samples: list[tuple[Mapping[str, str], Value]] = [({"result": result}, count) for result, count in results]
    what = "payload tap" if name == TAP_METRIC else "payload logger"
    text = f"Events of the {what}: taken by the sink, dropped because too many waited, refused by the sink"
    return Family(name, "counter", text, samples)
