"""Drift as a participant of the reconciler: counts the features of what taps recorded since the last turn.

Counts go to the open block in the turn's transaction, together with the taps' cursor. A block is closed once it has 100
rows of stable and a minute; only then are the detectors read and written. A turn of a service that keeps no answers has
no query for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np

from deployments.domain.service_state.desired import Role
from deployments.models import Revision
from deployments.reconcile.participants.taps import TAPS
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from feedback.domain.drift.features import MOST_FEATURES, Feature, Kind, Source
from feedback.domain.drift.sketch import FIRST_VALUES, Bins, bins_of, stored_bins
from feedback.domain.drift.watch import begun, watch_json
from feedback.models import DriftBlock, DriftFeature
from feedback.reconcile.answers import ANSWERS
from feedback.reconcile.drift_blocks import close
from feedback.reconcile.drift_exchanges import Taken, taken_from
from feedback.reconcile.first_values import first_values, keep_first
from feedback.reconcile.kept_exchange import is_joinable
from serving_runtime.shared.sampling import is_sampled

BLOCK_ROWS = 100
BLOCK_TIME = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Found:
    """Features of what stable and a canary answered since the last turn; `canary` is empty without one."""

    stable: Taken
    canary: Taken = field(default_factory=Taken)
    canary_name: str = ""


class Drift(Participant[Found | None]):
    """Watches the shapes of a service's requests and answers."""

    def collect(self, turn: Turn) -> Found | None:
        """Return the features of the share of requests whose answers are kept; None without any."""
        answers = turn.found(ANSWERS)
        stable, canary = turn.read.revision(Role.STABLE), turn.read.revision(Role.CANARY)
        if answers is None or stable is None:
            return None
        kept = answers.kept
        recorded = (each for each in turn.found(TAPS).exchanges if is_joinable(each.request_id))
        exchanges = [each for each in recorded if is_sampled(each.request_id, kept.share_percent / 100)]

        def taken(revision: str) -> Taken:
            its = [each for each in exchanges if each.revision == revision]
            return taken_from(its, kept.output, with_texts=kept.keeps_inputs)

        if canary is None:
            return Found(taken(stable.name))
        return Found(taken(stable.name), taken(canary.name), canary.name)

    def record(self, change: Change, found: Found | None) -> None:
        """Count the features, and close a block that is complete."""
        stable = change.revision(Role.STABLE)
        if found is None or stable is None or not (found.stable.rows or found.canary.rows):
            return
        block = _open_block(change, stable, found.canary_name)
        rows = _features(change, stable, found.stable)
        bins = {row.name: stored_bins(row.bins) for row in rows.values() if row.bins}
        _add_first(change, block, rows, found.stable)
        _add(block.counts.setdefault("stable", {}), found.stable, bins)
        _add(block.counts.setdefault("canary", {}), found.canary, bins)
        block.rows += found.stable.rows
        if block.rows >= BLOCK_ROWS and change.now - block.began_at >= BLOCK_TIME:
            close(change, block)
            block.began_at, block.rows, block.counts = change.now, 0, {}
        block.save()

    def unsettled(self, change: Change) -> bool:
        """Return whether answers are kept of replicas that run."""
        return ANSWERS.unsettled(change)


DRIFT = Drift()


def _open_block(change: Change, stable: Revision, canary: str) -> DriftBlock:
    """Return the open block; counts of revisions that have other roles now are dropped."""
    block = DriftBlock.objects.filter(service=change.service).first()
    if block is None:
        return DriftBlock(service=change.service, began_at=change.now, stable=stable.name, canary=canary)
    if block.stable != stable.name:
        block.stable, block.counts, block.first = stable.name, {}, b""
        block.rows, block.began_at = 0, change.now
    if block.canary != canary:
        block.canary = canary
        block.counts.pop("canary", None)
    return block


def _features(change: Change, stable: Revision, found: Taken) -> dict[str, DriftFeature]:
    """Return the service's features by name, with those that are new; those of another version's answers begin again.

    The states are not read: they are large, and only a closed block changes them.
    """
    there = list(DriftFeature.objects.filter(service=change.service).defer("state"))
    old = [row.pk for row in there if row.version not in (None, stable.model_version_id)]
    if old:
        DriftFeature.objects.filter(pk__in=old).delete()
    rows = {row.name: row for row in there if row.pk not in old}
    new = {feature.name: feature for feature in found.values if feature.name not in rows}
    made = [
        DriftFeature(
            service=change.service,
            name=feature.name,
            source=feature.source,
            kind=feature.kind,
            version=stable.model_version_id if feature.source is Source.ANSWER else None,
            since=change.now,
        )
        for feature in list(new.values())[: MOST_FEATURES - len(rows)]
    ]
    return rows | {row.name: row for row in DriftFeature.objects.bulk_create(made)}


def _add_first(change: Change, block: DriftBlock, rows: Mapping[str, DriftFeature], found: Taken) -> None:
    """Keep the first values of features without bins, and fix the bins of those that have enough of them."""
    before = first_values(block)
    first = {name: values for name, values in before.items() if name in rows and rows[name].bins is None}
    for feature, values in found.values.items():
        row = rows.get(feature.name)
        if row is None or row.bins is not None or row.kind != feature.kind:
            continue
        kept = [*first.get(feature.name, ()), *_storable(feature, values)]
        if len(kept) < FIRST_VALUES:
            first[feature.name] = sorted(kept)
            continue
        first.pop(feature.name, None)
        fixed = bins_of(feature.kind, kept)
        row.bins, row.since = {} if fixed is None else fixed.json(), change.now
        row.state = None if fixed is None else watch_json(begun(fixed, change.now))
        row.save(update_fields=["bins", "since", "state"])
    if first != before:
        keep_first(block, first)


def _storable(feature: Feature, values: object) -> list[float] | list[str]:
    if feature.kind is Kind.CLASS:
        return list(values)  # type: ignore[call-overload, no-any-return]
    numbers = np.asarray(values, float)
    return [float(f"{value:.6g}") for value in numbers[np.isfinite(numbers)]]


def _add(counts: dict[str, list[float]], found: Taken, bins: Mapping[str, Bins]) -> None:
    for feature, values in found.values.items():
        its = bins.get(feature.name)
        if its is not None and its.kind is feature.kind:
            before = np.array(counts.get(feature.name, np.zeros(its.size)), float)
            counts[feature.name] = (before + its.counts(values)).tolist()
