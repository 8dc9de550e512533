"""Configuration drift: changes made by hand on a cluster, tracked from tick to tick. Pure.

    found, left      reported when it is found, shown until it is gone, which is reported too
    found, put back  reported when it is found, shown with how often it was put back until it no longer recurs

A field that is changed again and again has so one event, and a count that rises.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from deployments.domain.rollout.event_messages import Line
from events.domain.kinds import Kind
from integrations.clusters.base import Drift

REMEMBERED = timedelta(minutes=10)
"""How long a reverted change is shown, without a new event."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A difference as shown; `since` and `seen_at` are Unix seconds of the first and last tick that found it."""

    drift: Drift
    since: float
    seen_at: float
    times: int = 1

    @property
    def key(self) -> tuple[str, str]:
        """Return the field of the difference."""
        return (self.drift.object, self.drift.path)


def stored(rows: Sequence[dict[str, Any]]) -> tuple[Shown, ...]:
    """Return the value from the JSON of `to_json`."""
    return tuple(Shown(Drift(**row["drift"]), row["since"], row["seen_at"], row["times"]) for row in rows)


def to_json(shown: Sequence[Shown]) -> list[dict[str, Any]]:
    """Return the differences in the form of a service's row."""
    return [asdict(each) for each in shown]


def note(before: Sequence[Shown], found: Sequence[Drift], now: datetime) -> tuple[tuple[Shown, ...], list[Line]]:
    """Return the differences to show after a tick that found these, and the events to write."""
    at = now.timestamp()
    known = {each.key: each for each in before}
    shown, lines = {}, []
    for drift in found:
        was = known.get((drift.object, drift.path))
        is_known = was is not None and (was.drift.healed, was.drift.manager) == (drift.healed, drift.manager)
        if was is not None and is_known and not (drift.healed or was.drift != drift):
            shown[was.key] = was  # unchanged since the last tick
            continue
        if was is not None and is_known:
            new = replace(was, drift=drift, seen_at=at, times=was.times + drift.healed)
        else:
            new = Shown(drift, at, at)
            lines.append(Line(Kind.DRIFT_HEALED if drift.healed else Kind.DRIFT_FOUND, sentence(drift)))
        shown[new.key] = new
    for each in before:
        if each.key in shown:
            continue
        if each.drift.healed and at - each.seen_at < REMEMBERED.total_seconds():
            shown[each.key] = each
        elif not each.drift.healed:
            lines.append(Line(Kind.DRIFT_GONE, f"{_place(each.drift)} is as it is wanted again"))
    return tuple(shown[key] for key in sorted(shown)), lines


def sentence(drift: Drift) -> str:
    """Return a sentence with what was changed, by whom, and the outcome."""
    by = f", changed by {drift.manager}" if drift.manager else ""
    if not drift.path:
        there, now = "is not there any more", "it was created again" if drift.healed else "it stays away"
    elif not drift.found:
        there, now = f"was taken away, {drift.wanted} is wanted", "it was put back" if drift.healed else "it is left so"
    else:
        there = f"is {drift.found}, not {drift.wanted}"
        now = "it was put back" if drift.healed else "it is left so"
    return f"{_place(drift)} {there}{by}; {now}, as the service's file says of drift"


def _place(drift: Drift) -> str:
    return f"{drift.path} of {drift.object}" if drift.path else drift.object
