"""Fills a database with models and services, up to one size after the other."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from django.db import connection
from django.db.models import F, Model
from django.utils import timezone

from accounts.models import AuditEntry
from benchmarks.scale.outside import OutsideCluster
from benchmarks.scale.template import Template, like
from deployments.models import InferenceService, Revision
from registry.models import Alias, ModelVersion, RegisteredModel
from tests.deployments._support.fakes import ManualClock
from tests.deployments._support.platform import Platform

VERSIONS_PER_MODEL = 20
BIG_MODEL = "big-model"
"""It has a tenth of all versions."""
ROLLING = 100
"""So many services are in the middle of a rollout, whatever their number."""
_AT_ONCE = 2000
Row = TypeVar("Row", bound=Model)


class Filling:
    """What is there, and what others are made like."""

    def __init__(self) -> None:
        self.cluster = OutsideCluster()
        self._services = self._models = self._in_big = 0
        platform = Platform(self.cluster, clock=ManualClock(timezone.now() - timedelta(hours=1)))
        platform.live()
        platform.promoted()
        platform.until(InferenceService.objects.filter(settled=F("changes")).exists)
        self._quiet = self._seen()
        platform.policy(name="slow", steps=[{"weight": 10, "hold": "12h"}], progressDeadline="24h")
        platform.start("1", "slow")
        platform.until(lambda: platform.rollout().confirmed_at is not None)
        self._rolling = self._seen()
        InferenceService.objects.all().delete()

    def fill(self, *, versions: int, services: int) -> None:
        """Bring the tables to this size, and let the database know how they are."""
        now = timezone.now()
        self._fill_models(versions, now)
        self._fill_services(services, now)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")

    def _seen(self) -> Template:
        return Template.of(InferenceService.objects.get(), self.cluster)

    def _fill_models(self, versions: int, now: datetime) -> None:
        by = {"created_at": now, "created_by": "alice (token ci)"}
        big, _ = RegisteredModel.objects.get_or_create(name=BIG_MODEL, defaults=by)
        in_big = versions // 10
        numbers = range(self._models, (versions - in_big) // VERSIONS_PER_MODEL)
        models = made(
            RegisteredModel(
                name=f"model-{number:06}",
                description="Classifies what it is given",
                tags={"team": f"team-{number % 50}"},
                latest_number=VERSIONS_PER_MODEL,
                **by,
            )
            for number in numbers
        )
        owners = [(model, number) for model in models for number in range(1, VERSIONS_PER_MODEL + 1)]
        owners += [(big, number) for number in range(self._in_big + 1, in_big + 1)]
        template = ModelVersion.objects.get(model__name="digits", number=1)
        found = made(
            like(template, model_id=model.pk, number=number, digest=f"sha256:{model.pk:032}{number:032}", **by)
            for model, number in owners
        )
        first = [each for each in found if each.number == 1]
        made(Alias(model_id=each.model_id, name="champion", version=each, moved_at=now) for each in first)
        made(
            AuditEntry(
                at=now,
                actor=f"user-{index % 40} (token ci)",
                action="model_version.register",
                target=f"models/{model.name}/versions/{number}",
                after={"digest": f"sha256:{number:064}", "size_bytes": 1},
            )
            for index, (model, number) in enumerate(owners)
        )
        self._models, self._in_big = numbers.stop, in_big

    def _fill_services(self, services: int, now: datetime) -> None:
        numbers = range(self._services, services)
        versions = list(ModelVersion.objects.filter(number=1).select_related("model").order_by("pk"))
        of = {f"service-{number:05}": self._rolling if number < ROLLING else self._quiet for number in numbers}
        rows = made(
            template.service_like(name, versions[number % len(versions)], now)
            for number, (name, template) in zip(numbers, of.items(), strict=True)
        )
        revisions: dict[int, list[Revision]] = defaultdict(list)
        for each in made(each for row in rows for each in of[row.name].revisions_like(row)):
            revisions[each.service_id].append(each)
        made(each for row in rows for each in of[row.name].rollouts_like(row, revisions[row.pk]))
        made(each for row in rows for each in of[row.name].events_like(row))
        traffic = [each for row in rows for each in of[row.name].traffic_like(row, revisions[row.pk], now)]
        for kind in {type(each) for each in traffic}:
            made(each for each in traffic if type(each) is kind)
        for name, template in of.items():
            template.put_on(self.cluster, name)
        self._services = services


def made(rows: Iterable[Row]) -> list[Row]:
    """Insert the rows, some thousands at a time, and return them."""
    left, found = iter(rows), []
    while some := list(islice(left, _AT_ONCE)):
        found += type(some[0])._default_manager.bulk_create(some)
    return found
