"""Limits of rows a minute: the rows of a window, and who has used up a limit in it. Pure.

    requests of the access log --> RowWindow --> RowsExceeded: who is refused until the window ends

A window is a clock minute. Rows count in the one in which their line is read, a second or two after the answer, so that
those at a minute's end count in the next one and none is left out. Only who is limited is counted: a window is as large
as the limits that are set, with at most `MAX_CALLERS` callers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from integrations.clusters.base import CallerKeys
from integrations.clusters.base.logged_requests import LoggedRequest
from integrations.clusters.local.envoy.routes import with_previews
from integrations.clusters.local.envoy.values import RowsExceeded, ServiceRoute

MAX_CALLERS = 4096
"""Callers of services with a limit of each caller that a window counts, all services together; further ones count for
other limits only."""


@dataclass(frozen=True, slots=True)
class RowLimits:
    """Rows a minute by names; without any it is false.

    Attributes:
        services, callers: by `<namespace>/<service>`, of all callers together and of each.
        keys, teams: at all services together.
    """

    services: Mapping[str, int] = field(default_factory=dict)
    callers: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    teams: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.services or self.callers or self.keys or self.teams)

    @classmethod
    def of(cls, services: Iterable[ServiceRoute], keys: CallerKeys) -> "RowLimits":
        """Return the limits of services, of their previews, and of keys and teams."""
        limited = [(service.key, service.limits) for service in with_previews(services)]
        return cls(
            {key: each.rows_per_minute for key, each in limited if each.rows_per_minute is not None},
            {key: each.caller_rows_per_minute for key, each in limited if each.caller_rows_per_minute is not None},
            {each.key: each.rows_per_minute for each in keys.row_rates if each.key},
            {each.team: each.rows_per_minute for each in keys.row_rates if each.team},
        )


class RowWindow:
    """The rows of one minute."""

    def __init__(self, minute: int) -> None:
        self.minute = minute
        self._services: Counter[str] = Counter()
        self._callers: Counter[tuple[str, str]] = Counter()
        self._keys: Counter[str] = Counter()
        self._teams: Counter[str] = Counter()

    def add(self, request: LoggedRequest, limits: RowLimits) -> None:
        """Count the rows of a request for each limit that it is under; requests without a key are one caller."""
        if not request.rows:
            return
        if request.service in limits.services:
            self._services[request.service] += request.rows
        caller = request.service, request.key
        if request.service in limits.callers and (caller in self._callers or len(self._callers) < MAX_CALLERS):
            self._callers[caller] += request.rows
        if request.key in limits.keys:
            self._keys[request.key] += request.rows
        if request.team in limits.teams:
            self._teams[request.team] += request.rows

    def exceeded(self, limits: RowLimits) -> RowsExceeded:
        """Return who has used up a limit; the order depends on the names only."""
        return RowsExceeded(
            _used_up(self._services, limits.services),
            tuple(
                sorted(
                    caller
                    for caller, rows in self._callers.items()
                    if caller[0] in limits.callers and rows >= limits.callers[caller[0]]
                )
            ),
            _used_up(self._keys, limits.keys),
            _used_up(self._teams, limits.teams),
        )


def _used_up(rows: Counter[str], limits: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(name for name, count in rows.items() if name in limits and count >= limits[name]))
