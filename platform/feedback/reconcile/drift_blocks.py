"""Close of a block of time: its counts go to the references, the detectors and the hours."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from deployments.reconcile.service_change import Change
from events.domain.kinds import Kind
from feedback.domain.drift.features import Floats, Source
from feedback.domain.drift.watch import sentence_of, watch_json, with_block
from feedback.models import DriftBlock, DriftFeature, DriftHour
from feedback.selectors.drift import watch_of


def close(change: Change, block: DriftBlock) -> None:
    """Give the block's counts to each feature, and emit an event for each one in which drift is detected."""
    rows = list(DriftFeature.objects.filter(service=change.service).exclude(state=None).order_by("pk"))
    for row in rows:
        counts = _counts(block, "stable", row)
        if counts is None:
            continue
        canary = _counts(block, "canary", row)
        watch = with_block(watch_of(row), counts, canary, block.canary, change.now)
        if row.alarm_at is None and watch.has_drifted(len(rows)):
            row.alarm_at = change.now
            row.sentence = sentence_of(watch, row.name, Source(row.source), block.stable)
            change.event(Kind.DATA_DRIFT_DETECTED, row.sentence, revision=block.stable, by_itself=True)
            watch = replace(watch, recent=counts)  # what a person may accept has nothing from before
        row.state, row.evidence = watch_json(watch), watch.evidence
    DriftFeature.objects.bulk_update(rows, ["state", "evidence", "alarm_at", "sentence"])
    names = {"stable": block.stable, "canary": block.canary}
    for role, revision in names.items():
        if revision and block.counts.get(role):
            _add_to_hour(change, revision, block.counts[role])


def _counts(block: DriftBlock, role: str, row: DriftFeature) -> Floats | None:
    found = block.counts.get(role, {}).get(row.name)
    return None if found is None else np.array(found, float)


def _add_to_hour(change: Change, revision: str, counts: Mapping[str, list[float]]) -> None:
    hour = change.now.replace(minute=0, second=0, microsecond=0)
    row, _ = DriftHour.objects.get_or_create(service=change.service, revision=revision, hour=hour)
    after: dict[str, Any] = dict(row.counts)
    for name, added in counts.items():
        before = after.get(name)
        # After new bins the hour's counts of the old ones are no use.
        same = before is not None and len(before) == len(added)
        after[name] = [one + other for one, other in zip(before or (), added, strict=True)] if same else added
    row.counts = after
    row.save(update_fields=["counts"])
