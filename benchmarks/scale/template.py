"""The rows of a service that the real code made, and the same rows for others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import F, Model

from deployments.mapping import searched_text
from deployments.models import InferenceService, Revision, Rollout, TrafficLook, TrafficPoint
from events.models import Event
from integrations.clusters.base import Desired, Observed
from registry.models import ModelVersion
from tests.deployments._support.fakes import FakeCluster

POINTS = 8
_LATENCY = [[1000.0, 200], [5000.0, 90], [None, 1]]
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Template:
    """One service as it is in the database and on its cluster."""

    service: InferenceService
    revisions: list[Revision]
    rollouts: list[Rollout]
    events: list[Event]
    look: TrafficLook
    observed: Observed
    desired: Desired

    @classmethod
    def of(cls, service: InferenceService, cluster: FakeCluster) -> "Template":
        """Return how the service is now."""
        key = (service.namespace, service.name)
        return cls(
            service,
            list(service.revisions.order_by("number")),
            list(service.rollouts.order_by("pk")),
            list(service.events.order_by("seq")),
            TrafficLook.objects.get(service=service),
            cluster.observed[key],
            cluster.desired[key],
        )

    def service_like(self, name: str, version: ModelVersion, now: datetime) -> InferenceService:
        """Return a service of another name and model, which had a tick just now."""
        before = self.service.name
        times = dict.fromkeys(("ticked_at", "seen_at", "traffic_at"), now - timedelta(seconds=5))
        seen = {key.replace(before, name): value for key, value in self.service.observed.items()}
        reason = self.service.reason.replace(before, name)
        document = {**self.service.document, "metadata": {"name": name}}
        own = {"name": name, "document": document, "model_version_id": version.pk, "observed": seen, "reason": reason}
        own["searched"] = searched_text(self.service.namespace, name, version.model.name)
        return like(self.service, leave=("changed_at",), **own, **times)

    def revisions_like(self, row: InferenceService) -> Iterator[Revision]:
        """Yield its revisions for another service, whose model they serve."""
        for each in self.revisions:
            name = f"{row.name}-{each.number:05}"
            yield like(each, service_id=row.pk, name=name, model_version_id=row.model_version_id)

    def rollouts_like(self, row: InferenceService, revisions: Iterable[Revision]) -> Iterator[Rollout]:
        """Yield its rollouts for another service, between that one's revisions."""
        own, numbers = {each.number: each.pk for each in revisions}, {each.pk: each.number for each in self.revisions}
        for each in self.rollouts:
            ends = {"from_revision_id": each.from_revision_id, "to_revision_id": each.to_revision_id}
            yield like(each, service_id=row.pk, **{name: own[numbers[pk]] for name, pk in ends.items()})

    def events_like(self, row: InferenceService) -> Iterator[Event]:
        """Yield its events for another service."""
        for each in self.events:
            yield like(each, service_id=row.pk, rollout_id=None, message=each.message.replace("digits", row.name))

    def traffic_like(self, row: InferenceService, revisions: Iterable[Revision], now: datetime) -> Iterator[Model]:
        """Yield the last look at its counters, and the points of the last minutes."""
        yield TrafficLook(service_id=row.pk, at=now - timedelta(seconds=5), totals=self.look.totals)
        stable = next(each for each in revisions if each.role == "stable")
        for number in range(POINTS):
            at = now - timedelta(seconds=5 + 15 * number)
            counts: dict[str, Any] = {"requests": 300, "server_errors": 1, "latency": _LATENCY, "replicas": 1}
            yield TrafficPoint(service_id=row.pk, revision_id=stable.pk, at=at, seconds=15.0, **counts)

    def put_on(self, cluster: FakeCluster, name: str) -> None:
        """Let the cluster run a service of another name as this one."""
        key, before = (self.service.namespace, name), self.service.name

        def renamed(text: str) -> str:
            return text.replace(before, name, 1)

        cluster.observed[key] = replace(
            self.observed,
            service=name,
            revisions=tuple(
                replace(
                    each,
                    name=renamed(each.name),
                    replicas=tuple(replace(one, name=renamed(one.name)) for one in each.replicas),
                )
                for each in self.observed.revisions
            ),
        )
        revisions = (replace(each, name=renamed(each.name), model_name=name) for each in self.desired.revisions)
        cluster.desired[key] = replace(self.desired, service=name, revisions=tuple(revisions))


def like(row: Row, *, leave: tuple[str, ...] = (), **own: Any) -> Row:
    """Return a row that is not saved and as `row` but for its own columns."""
    columns = {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if not field.primary_key and field.attname not in leave and not isinstance(getattr(row, field.attname), F)
    }
    return type(row)(**{**columns, **own})
