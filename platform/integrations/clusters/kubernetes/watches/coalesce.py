"""Change coalescing: each service is reported at most once per interval. Pure."""

from collections.abc import Iterable, Iterator

Service = tuple[str, str]
"""Namespace and name."""


class Coalescer:
    """The first change of a service is due at once, those that follow together when `every_s` have passed.

    Not for several threads at once. Times are monotonic seconds.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._waiting: set[Service] = set()
        self._reported_at: dict[Service, float] = {}

    def add(self, services: Iterable[Service]) -> None:
        """Record services of which something changed."""
        self._waiting.update(services)

    def due(self, now: float) -> list[Service]:
        """Return the services to reconcile now, which then count as reported."""
        found = sorted(service for service in self._waiting if self._free_at(service) <= now)
        self._waiting.difference_update(found)
        self._reported_at = {service: at for service, at in self._reported_at.items() if at + self._every_s > now}
        self._reported_at.update(dict.fromkeys(found, now))
        return found

    def next_s(self, now: float) -> float | None:
        """Return in how many seconds something is due; None where nothing waits."""
        times: Iterator[float] = (self._free_at(service) for service in self._waiting)
        first = min(times, default=None)
        return None if first is None else max(0.0, first - now)

    def _free_at(self, service: Service) -> float:
        reported_at = self._reported_at.get(service)
        return float("-inf") if reported_at is None else reported_at + self._every_s
