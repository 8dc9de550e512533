"""Pinned pod templates as a participant: a revision that has served keeps its pods until it is replaced by another.

What is recorded is what runs, read from the cluster, so an upgrade of the platform pins what it finds. Each turn also
records how the pinned templates differ from what a new revision would get now, for pages and upgrades of the fleet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from clusters.services.connection import file_of
from common.errors import FairleadError
from deployments.domain.service_state.desired import has_served
from deployments.mapping import patches_of_service
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from integrations.clusters.base import Desired, PodTemplates


@dataclass(frozen=True, slots=True)
class Found:
    """Pod templates to pin, and how the pinned ones differ from present ones, both by revision."""

    templates: Mapping[str, PodTemplates] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)


class Templates(Participant[Found]):
    """Records the pod templates of revisions that have served."""

    def collect(self, turn: Turn) -> Found:
        """Return what the driver finds; nothing where it cannot, for the cluster keeps what runs until it can."""
        if turn.seen is None:
            return Found()
        driver, desired = turn.outside.driver, turn.read.desired()
        try:
            templates = driver.pod_templates(desired) if _is_due(turn) else {}
            is_pinned = any(each.pod_templates for each in desired.revisions)
            changes = self._changes(turn, desired) if is_pinned else {}
        except FairleadError:
            return Found()
        return Found(templates, changes)

    def _changes(self, turn: Turn, desired: Desired) -> Mapping[str, str]:
        """Return how pinned templates differ; the same by the same driver, which follows the cluster's file."""
        driver = turn.outside.driver
        known: tuple[object, Mapping[str, str]] | None = turn.kept.get(self)
        if known is None or known[0] != (driver, desired):
            known = (driver, desired), driver.template_changes(_as_new(turn, desired))
            turn.kept[self] = known
        return known[1]

    def record(self, change: Change, found: Found) -> None:
        """Pin templates, and record what has changed."""
        for row in change.revisions:
            templates, changes = row.pod_templates, row.template_changes
            if not templates and row.name in found.templates:
                row.pod_templates = dict(found.templates[row.name])
            row.template_changes = found.changes.get(row.name, changes)
            if (row.pod_templates, row.template_changes) != (templates, changes):
                row.save(update_fields=["pod_templates", "template_changes"])
                change.is_changed = True


TEMPLATES = Templates()


def _is_due(turn: Turn) -> bool:
    """Return whether a revision without recorded templates has served."""
    state, seen = turn.read.state(), turn.seen
    for revision in state.revisions:
        if revision.stopped_at is None and not revision.pod_templates:
            observed = None if seen is None else seen.revision(revision.name)
            if has_served(state, revision) or (observed is not None and observed.ready_replicas):
                return True
    return False


def _as_new(turn: Turn, desired: Desired) -> Desired:
    """Return the desired state with the patches that new revisions get: the present ones of the cluster file."""
    file = file_of(turn.service.cluster)
    of_cluster = () if file is None else tuple(file.patches)
    of_service = {row.name: patches_of_service(row) for row in turn.read.revisions}
    return replace(
        desired,
        revisions=tuple(
            replace(each, patches=(*of_cluster, *of_service.get(each.name, ()))) for each in desired.revisions
        ),
    )
