"""A dry run writes nothing, and a change carries out its plan once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from clusters.models import Cluster
from clusters.services.plans import cluster_plan
from common.uris import parse
from deployments.models import InferenceService, Revision, Rollout, RolloutPolicy
from deployments.reconcile.service_change import load
from deployments.services import (
    policy_plan,
    rollout_plan,
    rollout_start,
    service_apply,
    service_plan,
)
from events.models import Event
from registry.models import ModelImport
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform

_WRITES = ("INSERT", "UPDATE", "DELETE", "SAVEPOINT", "BEGIN")


def written(call: Callable[[], object]) -> list[str]:
    """Return the statements of a call that write, lock or open a transaction."""
    with CaptureQueriesContext(connection) as queries:
        call()
    found = [query["sql"] for query in queries.captured_queries]
    return [sql for sql in found if sql.startswith(_WRITES) or "FOR UPDATE" in sql]


def inserted(call: Callable[[], object]) -> list[str]:
    """Return the tables that a call inserts into, once for each statement."""
    return sorted(sql.split('"')[1] for sql in written(call) if sql.startswith("INSERT"))


def asked(platform: Platform, **more: Any) -> dict[str, Any]:
    return {"namespace": "default", "name": "digits", "actor": "alice", "now": platform.clock(), **more}


def test_the_plan_of_a_rollout_writes_nothing(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    assert written(lambda: rollout_plan(**asked(platform, version="2", policy=None))) == []
    assert written(lambda: rollout_plan(**asked(platform, version="2", policy=None))) == []


@pytest.mark.parametrize("change", ["new version", "more replicas", "stopped", "nothing"])
def test_the_plan_of_a_service_file_writes_nothing(platform: Platform, change: str) -> None:
    platform.live()
    platform.version(2)
    document = platform.document(uri="models:/digits/2" if change == "new version" else "models:/digits/1")
    if change == "more replicas":
        document["spec"]["predictor"]["minReplicas"] = 2
    if change == "stopped":
        document["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    assert written(lambda: service_plan(**asked(platform, document=document))) == []


def test_the_plan_of_a_new_service_or_policy_writes_nothing(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    Cluster.objects.get_or_create(name="local", defaults={"kind": "local", "created_at": platform.clock()})
    assert written(lambda: service_plan(**asked(platform, document=platform.document()))) == []
    text = {**RolloutPolicy.objects.get().document, "name": "bold"}
    plan = {"document": text, "name": "bold", "actor": "alice", "now": platform.clock()}
    assert written(lambda: policy_plan(**plan)) == []
    assert not InferenceService.objects.exists()


def test_a_rollout_is_carried_out_from_its_plan_with_the_writes_of_one(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    wish = asked(platform, version="2", policy=None)
    planned = rollout_plan(**wish)
    audited, before = AuditEntry.objects.count(), Event.objects.count()
    rows = inserted(planned.carry_out)
    rollout = Rollout.objects.get()
    assert (rollout.to_revision.name, rollout.from_revision.name) == ("digits-00002", "digits-00001")
    assert rows.count("deployments_rollout") == rows.count("deployments_revision") == 1
    assert rows.count("deployments_event") == 1  # several rows, one statement
    assert AuditEntry.objects.count() == audited + 1
    assert AuditEntry.objects.latest("pk").detail["rollout"] == rollout.pk
    said = list(Event.objects.order_by("seq").values_list("kind", "message"))[before:]
    assert said[-1][1].startswith(f"rollout {rollout.pk} from digits-00001 (version 1) to digits-00002 (version 2)")
    assert platform.rollout().phase == "Pending"
    assert platform.turn() is not None


def test_a_plan_and_its_change_foresee_the_same(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    wish = asked(platform, version="2", policy=None)
    planned = rollout_plan(**wish)
    planned.carry_out()
    desired = load(InferenceService.objects.get().pk, now=platform.clock()).desired()
    assert planned.plan.desired_states[0] == desired


def test_a_plan_that_was_overtaken_is_made_again(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.version(3)
    planned = rollout_plan(**asked(platform, version="2", policy=None))
    first = rollout_start(**asked(platform, version="3", policy=None))
    second = planned.carry_out()
    first.refresh_from_db()
    assert (first.phase, second.to_revision.name) == ("Aborted", "digits-00003")
    assert Revision.objects.count() == 3


def test_a_new_service_that_somebody_else_made_meanwhile_is_changed(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    planned = service_plan(**asked(platform, document=platform.document()))
    service_apply(**asked(platform, document=platform.document()))
    service, created = planned.carry_out()
    assert (service.pk, created) == (InferenceService.objects.get().pk, False)
    assert Revision.objects.count() == 1


def test_a_planned_import_is_ordered_once(platform: Platform, tmp_path: Any, settings: Any) -> None:
    settings.IMPORT_FROM = (parse(tmp_path.as_uri()),)
    document = platform.document(uri=(tmp_path / "one").as_uri(), policy=None)
    planned = service_plan(**asked(platform, document=document))
    assert not ModelImport.objects.exists()
    service, created = planned.carry_out()
    assert created
    assert InferenceService.objects.get().awaited_import == ModelImport.objects.get()
    assert service.awaited_import_id == ModelImport.objects.get().pk


def test_the_reconcilers_columns_are_left_alone(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    planned = rollout_plan(**asked(platform, version="2", policy=None))
    later = platform.clock() + timedelta(seconds=5)
    InferenceService.objects.update(seen_at=later, ticked_at=later)
    planned.carry_out()
    assert InferenceService.objects.get().seen_at == later


def test_a_dry_run_over_the_api_writes_nothing_and_a_post_starts_one_rollout(
    platform: Platform, api: Callable[..., APIClient]
) -> None:
    platform.live()
    platform.version(2)
    client, url = api(Scope.WRITE), "/api/v1/services/default/digits/rollouts"
    client.post(f"{url}?dry_run=true", {"version": "2"})  # notes that the token is in use
    answers = []
    assert written(lambda: answers.append(client.post(f"{url}?dry_run=true", {"version": "2"}))) == []
    assert (
        written(
            lambda: answers.append(
                client.put(url[:-9], platform.document(), format="json", QUERY_STRING="dry_run=true")
            )
        )
        == []
    )
    rows = inserted(lambda: answers.append(client.post(url, {"version": "2"})))
    assert [answer.status_code for answer in answers] == [200, 200, 201]
    assert [rows.count(f"deployments_{row}") for row in ("rollout", "revision", "event")] == [1, 1, 1]


def test_the_plan_of_a_cluster_writes_nothing_and_is_carried_out_once(platform: Platform) -> None:
    plan = {"document": LEAST, "name": "production", "actor": "alice", "now": platform.clock()}
    assert written(lambda: cluster_plan(**plan)) == []
    planned, late = cluster_plan(**plan), cluster_plan(**plan)
    assert inserted(planned.carry_out) == ["accounts_auditentry", "deployments_cluster"]
    assert written(lambda: cluster_plan(**plan)) == []
    assert cluster_plan(**plan).plan.outcome == "unchanged"
    assert late.carry_out()[1] is False, "another one was faster"
    changed = cluster_plan(**{**plan, "document": {**LEAST, "domain": "models.example.com"}})
    Cluster.objects.filter(name="production").update(problem="seen meanwhile")
    changed.carry_out()
    row = Cluster.objects.get(name="production")
    assert (row.document["domain"], row.problem) == ("models.example.com", "seen meanwhile")
    assert AuditEntry.objects.filter(action="cluster.apply").count() == 2
