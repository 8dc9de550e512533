"""What PostgreSQL reads for a list: no more than is shown, however many rows there are."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial

import dj_database_url
import pytest
from django.db import connections
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from clusters.models import Cluster
from deployments.domain.phases import ENDED_BADLY, Code, Phase
from deployments.domain.service_state.desired import Role
from deployments.mapping import searched_text
from deployments.models import InferenceService, Revision, Rollout
from deployments.selectors import service_search
from deployments.selectors.services import services_worst_first
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion, RegisteredModel
from registry.selectors.filters import OF_MODELS, OF_VERSIONS
from tests.control_plane.managing import django
from tests.servers.postgres import Postgres

pytestmark = [pytest.mark.postgres]

ROWS = 4000


@pytest.fixture(scope="module")
def filled(server: Postgres, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Give the alias of a database with many models, versions of one, services, and rollouts that went well."""
    migrated = django(server.url, "migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert "pg_trgm" not in migrated.stderr
    alias, now = "filled", timezone.now()
    connections.databases[alias] = {
        **connections.databases["default"],
        "OPTIONS": {},
        **dj_database_url.parse(server.url),
    }
    with django_db_blocker.unblock():
        try:
            cluster = Cluster.objects.using(alias).create(name="local", kind="local", created_at=now)
            names = [f"service-{number:05}" for number in range(ROWS)]
            InferenceService.objects.using(alias).bulk_create(
                InferenceService(
                    cluster=cluster,
                    namespace="default",
                    name=name,
                    document={},
                    searched=searched_text("default", name, "digits"),
                    created_at=now,
                    created_by="test",
                )
                for name in names
            )
            models = RegisteredModel.objects.using(alias).bulk_create(
                RegisteredModel(name=f"model-{number:05}", created_at=now, created_by="test") for number in range(ROWS)
            )
            _versions(alias, models[0], now)
            _rollouts(alias, now)
            with connections[alias].cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
            yield alias
        finally:
            connections[alias].close()
            delattr(connections._connections, alias)
            del connections.databases[alias]


def _versions(alias: str, model: RegisteredModel, now: datetime) -> None:
    by = {"size_bytes": 1, "created_at": now, "created_by": "test", "status": Status.READY}
    ModelVersion.objects.using(alias).bulk_create(
        ModelVersion(model=model, number=number, digest=f"sha256:{number:064}", **by) for number in range(1, ROWS + 1)
    )


def _rollouts(alias: str, now: datetime) -> None:
    version = ModelVersion.objects.using(alias).first()
    services = InferenceService.objects.using(alias).order_by("pk")
    by = {"model_version": version, "min_replicas": 1, "max_replicas": 1, "replicas": 1, "created_at": now}
    revisions = Revision.objects.using(alias).bulk_create(
        Revision(service=service, number=1, name=f"{service.name}-00001", role=Role.STABLE, **by)
        for service in services
    )
    ended = {"phase": Phase.HEALTHY, "reason_code": Code.PROMOTED, "policy_document": {}, "created_by": "test"}
    Rollout.objects.using(alias).bulk_create(
        Rollout(
            service=revision.service,
            from_revision=revision,
            to_revision=revision,
            attempt_started_at=now,
            started_at=now,
            finished_at=now,
            **ended,
        )
        for revision in revisions
    )


def of_services(alias: str, words: str) -> QuerySet[Model]:
    found = InferenceService.objects.using(alias).filter(service_search(words.split()))
    return found.order_by("namespace", "name")[:51]


def of_models(alias: str, part: str) -> QuerySet[Model]:
    condition: Q = next(one for one in OF_MODELS if one.name == "search").condition(part)
    return RegisteredModel.objects.using(alias).filter(condition).order_by("-pk")[:51]


@pytest.mark.parametrize("rows_of", [of_services, of_models], ids=["services", "models"])
@pytest.mark.parametrize(("part", "count"), [("-00042", 1), ("nothing", 0), ("e-0004", 10), ("e", 51)])
def test_no_search_reads_more_than_it_shows(filled: str, rows_of: type, part: str, count: int) -> None:
    if rows_of is of_models:
        part = part.replace("e-", "l-")
    rows = rows_of(filled, part)
    plan = rows.explain(analyze=True)
    assert len(rows) == count
    assert "Seq Scan" not in plan, plan
    assert "Rows Removed by Filter" not in plan, plan


def worst_services(alias: str) -> QuerySet[Model]:
    return services_worst_first(Cluster.objects.using(alias).get(), Q())[:51]


def revisions_with_gpus(alias: str) -> QuerySet[Model]:
    return Revision.objects.using(alias).filter(service__cluster__name="local", stopped_at=None).exclude(accelerator="")


def rollouts_that_ended_badly(alias: str) -> QuerySet[Model]:
    lately = timezone.now() - timedelta(days=1)
    found = Rollout.objects.using(alias).filter(finished_at__gte=lately, phase__in=ENDED_BADLY)
    return found.order_by("-finished_at")[:51]


def versions_with(alias: str, name: str, value: str) -> QuerySet[Model]:
    condition: Q = next(one for one in OF_VERSIONS if one.name == name).condition(value)
    model = RegisteredModel.objects.using(alias).get(name="model-00000")
    return ModelVersion.objects.using(alias).filter(condition, model=model).order_by("-number")[:51]


@pytest.mark.parametrize(
    ("rows_of", "count"),
    [
        pytest.param(worst_services, 51, id="services that are not well first"),
        pytest.param(revisions_with_gpus, 0, id="replicas with GPUs"),
        pytest.param(rollouts_that_ended_badly, 0, id="rollouts that ended badly"),
        pytest.param(partial(versions_with, name="status", value="READY"), 51, id="versions that are ready"),
        pytest.param(partial(versions_with, name="status", value="REJECTED"), 0, id="versions that are rejected"),
        pytest.param(partial(versions_with, name="approval", value="declined"), 0, id="versions that people declined"),
    ],
)
def test_no_list_reads_more_than_it_shows(filled: str, rows_of: Callable[[str], QuerySet[Model]], count: int) -> None:
    rows = rows_of(filled)
    plan = rows.explain(analyze=True)
    assert len(rows) == count
    assert not re.search(r"Seq Scan on (deployments_(?!cluster)|registry_(?!registeredmodel))", plan), plan
    assert "Rows Removed by Filter" not in plan, plan
