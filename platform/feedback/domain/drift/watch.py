"""State of one feature from block to block: learns a reference, then detects drift from it. Pure.

A feature has no bins at first; they are fixed by its first 500 values, and the rows after these are learned as the
reference: for a week, and until there are 5,000 of them; where so many take longer, for four weeks, if there are 500.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from feedback.domain.drift import detector
from feedback.domain.drift.detector import Part
from feedback.domain.drift.features import Floats, Source
from feedback.domain.drift.reference import (
    Learning,
    Reference,
    accepted,
    learn,
    learning_json,
    nothing_learned,
    reference_of,
    stored_learning,
    stored_reference,
)
from feedback.domain.drift.sketch import Bins, stored_bins

LEARNED_FOR = timedelta(days=7)
LONGEST = timedelta(days=28)
LEARNED_ROWS = 5000
LEAST_ROWS = 500
_FADING = 0.9  # of the counts that are shown as the present, per block


@dataclass(frozen=True, slots=True, eq=False)
class Versus:
    """A canary against stable in the same blocks: the counts of both, [bins], and the e-process of their difference."""

    canary: str
    of_canary: Floats
    of_stable: Floats
    capital: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """A feature with bins.

    Attributes:
        since: when its reference began.
        learning: sums of the reference while it is learned; None afterwards.
        learned: [bins] counts of the reference; so far, while it is learned.
        recent: [bins] counts of the last blocks, fading.
    """

    bins: Bins
    since: datetime
    learned: Floats
    recent: Floats
    capital: Floats
    learning: Learning | None = None
    reference: Reference | None = None
    versus: Versus | None = None

    @property
    def evidence(self) -> float:
        """Return the logarithm of the evidence of drift; 0 while the reference is learned."""
        return max(0.0, float(detector.evidence(self.capital))) if self.reference is not None else 0.0

    def evidence_percent(self, features: int) -> float:
        """Return how far the evidence is on its way to an alarm, by its logarithm."""
        return min(100.0, 100 * self.evidence / detector.threshold(features))

    def has_drifted(self, features: int) -> bool:
        """Return whether the evidence is an alarm's where the service has so many features."""
        return self.reference is not None and self.evidence >= detector.threshold(features)

    def differs(self, features: int) -> bool:
        """Return whether the canary's shape is proved to be another than stable's."""
        if self.versus is None:
            return False
        return float(detector.evidence(self.versus.capital)) >= detector.difference_threshold(features)


def begun(bins: Bins, now: datetime) -> Watch:
    """Return a feature whose bins were just fixed."""
    nothing = np.zeros(bins.size)
    events = len(bins.events(nothing))
    return Watch(bins, now, nothing, nothing, detector.calm(events), learning=nothing_learned(events))


def with_block(watch: Watch, stable: Floats, canary: Floats | None, name: str, now: datetime) -> Watch:
    """Return the feature after a block.

    Args:
        stable, canary: [bins] counts; None without rows of a canary.
        name: of the canary's revision.
    """
    rows = float(stable.sum())
    if not rows:
        return watch
    events = watch.bins.events(stable)
    watch = replace(watch, recent=watch.recent * _FADING + stable)
    if watch.learning is not None:
        learning = learn(watch.learning, events, rows)
        watch = replace(watch, learning=learning, learned=watch.learned + stable)
        return _finished(watch, learning) if _is_learned(learning, now - watch.since) else watch
    reference = watch.reference
    if reference is None:
        return watch
    watch = replace(watch, capital=detector.detect(watch.capital, events, rows, reference))
    if canary is None or not canary.sum():
        return watch
    return replace(watch, versus=_compared(watch, reference, stable, canary, name))


def with_present(watch: Watch, present: Floats, now: datetime) -> Watch | None:
    """Return the feature with the present as its reference; None where these are too few rows for one, or outliers.

    Args:
        present: [bins] counts that a person accepts.
    """
    rows = float(present.sum())
    if watch.learning is not None:
        return _finished(watch, watch.learning) if watch.learning.total >= LEAST_ROWS else watch
    if watch.reference is None or rows < LEAST_ROWS or watch.bins.outliers(present) > _MOST_OUTLIERS:
        return None
    events = watch.bins.events(present)
    return replace(
        watch,
        since=now,
        learned=present,
        reference=accepted(watch.reference, events, rows),
        capital=detector.calm(len(events)),
        versus=None,
    )


def sentence_of(watch: Watch, name: str, source: Source, revision: str) -> str:
    """Return what has moved most, and how far."""
    reference = watch.reference
    if reference is None:
        return ""
    event = detector.moved_event(watch.capital)
    present = watch.bins.events(watch.recent)[event] / max(1.0, float(watch.recent.sum()))
    where = f"answers of {revision}" if source is Source.ANSWER else f"requests to {revision}"
    of = "" if watch.bins.words(event).startswith("class ") and source is Source.ANSWER else f" of the {name}"
    share = f"the share of {watch.bins.words(event)}{of} in {where}"
    return f"{share} is {_percent(present)} where its reference has {_percent(float(reference.shares[event]))}"


def difference_sentence(watch: Watch, name: str, stable: str) -> str:
    """Return in which bin a canary differs most from stable in the same time."""
    versus = watch.versus
    if versus is None:
        return ""
    event = detector.moved_event(versus.capital)
    canary, other = (
        watch.bins.events(counts)[event] / max(1.0, float(counts.sum()))
        for counts in (versus.of_canary, versus.of_stable)
    )
    share = f"the share of {watch.bins.words(event)} of the {name}"
    return f"{share} is {_percent(canary)} for {versus.canary} and {_percent(other)} for {stable} in the same time"


def watch_json(watch: Watch) -> dict[str, Any]:
    """Return the state as JSON, without its bins and its beginning, which have columns of their own."""
    versus = watch.versus
    return {
        "learned": watch.learned.tolist(),
        "recent": np.round(watch.recent, 3).tolist(),
        "capital": detector.capital_json(watch.capital),
        "learning": None if watch.learning is None else learning_json(watch.learning),
        "reference": None if watch.reference is None else watch.reference.json(),
        "versus": None
        if versus is None
        else {
            "canary": versus.canary,
            "of_canary": versus.of_canary.tolist(),
            "of_stable": versus.of_stable.tolist(),
            "capital": detector.capital_json(versus.capital),
        },
    }


def stored_watch(bins: Mapping[str, Any], since: datetime, state: Mapping[str, Any]) -> Watch:
    """Return the state from its JSON."""
    learning, reference, versus = state["learning"], state["reference"], state["versus"]
    return Watch(
        bins=stored_bins(bins),
        since=since,
        learned=np.array(state["learned"], float),
        recent=np.array(state["recent"], float),
        capital=detector.stored_capital(state["capital"]),
        learning=None if learning is None else stored_learning(learning),
        reference=None if reference is None else stored_reference(reference),
        versus=None
        if versus is None
        else Versus(
            versus["canary"],
            np.array(versus["of_canary"], float),
            np.array(versus["of_stable"], float),
            detector.stored_capital(versus["capital"]),
        ),
    )


_MOST_OUTLIERS = 0.5
"""Of a present that is mostly outside of the bins the shape is not seen: its bins are fixed again."""


def _is_learned(learning: Learning, time: timedelta) -> bool:
    if time >= LONGEST:
        return learning.total >= LEAST_ROWS
    return time >= LEARNED_FOR and learning.total >= LEARNED_ROWS


def _finished(watch: Watch, learned: Learning) -> Watch:
    return replace(watch, learning=None, reference=reference_of(learned))


def _compared(watch: Watch, reference: Reference, stable: Floats, canary: Floats, name: str) -> Versus:
    events = watch.bins.events
    versus = watch.versus
    if versus is None or versus.canary != name:
        nothing = np.zeros(watch.bins.size)
        versus = Versus(name, nothing, nothing, detector.equal(len(reference.counts)))
    of_canary, of_stable = (Part(events(counts), float(counts.sum())) for counts in (canary, stable))
    return Versus(
        name,
        versus.of_canary + canary,
        versus.of_stable + stable,
        detector.compare(versus.capital, of_canary, of_stable, reference),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 or not share else f"{100 * share:.2g} %"
