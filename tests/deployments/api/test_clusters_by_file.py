"""`/api/v1/clusters/<name>`: administrators make, change, check and forget clusters; no answer has a secret."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from clusters.models import Cluster
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.platform import Platform
from tests.e2e.harness import free_port

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
PRODUCTION = "/api/v1/clusters/production"


def document(server: str = "https://127.0.0.1:6443", **changed: Any) -> dict[str, Any]:
    kubeconfig = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "robot", "user": {"token": "secret-of-robot"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }
    artifacts = {**LEAST["artifacts"], "root": "/artifacts"}
    return {**LEAST, "artifacts": artifacts, "connection": {"kubeconfig": kubeconfig}, **changed}


def test_a_cluster_is_made_changed_shown_and_forgotten_and_no_answer_has_its_secret(api: Api) -> None:
    client = api(Scope.ADMIN)
    made = client.put(PRODUCTION, document(), format="json")
    again = client.put(PRODUCTION, document(), format="json")
    changed = client.put(PRODUCTION, document(domain="models.example.com"), format="json")
    shown, listed = client.get(PRODUCTION), client.get("/api/v1/clusters")
    assert [answer.status_code for answer in (made, again, changed, shown, listed)] == [201, 200, 200, 200, 200]
    assert shown.json()["file"] == {
        **document(),
        "connection": {"kubeconfig": "stored"},
        "domain": "models.example.com",
    }
    assert client.put(PRODUCTION, shown.json()["file"], format="json").json() == shown.json(), "it can be sent back"
    assert [entry.action for entry in AuditEntry.objects.filter(target="clusters/production")] == [
        "cluster.apply",
        "cluster.apply",
    ]
    answers = [answer.content for answer in (made, again, changed, shown, listed)]
    secrets = (b"secret-of-robot", Cluster.objects.get(name="production").credentials.encode())
    assert all(secrets)
    assert not any(secret in content for secret in secrets for content in answers)
    assert client.delete(PRODUCTION).status_code == 204
    assert client.get(PRODUCTION).json()["error"]["message"] == "there is no cluster 'production'"


def test_a_dry_run_tells_and_changes_nothing(api: Api) -> None:
    client = api(Scope.ADMIN)
    plan = client.put(f"{PRODUCTION}?dry_run=true", document(), format="json")
    assert plan.json()["outcome"] == "created"
    assert b"secret-of-robot" not in plan.content
    assert not Cluster.objects.filter(name="production").exists()
    client.put(PRODUCTION, document(), format="json")
    assert client.put(f"{PRODUCTION}?dry_run=true", document(), format="json").json()["outcome"] == "unchanged"
    other = client.put(f"{PRODUCTION}?dry_run=true", document(drain="1m"), format="json").json()
    assert other["outcome"] == "changed"
    assert Cluster.objects.get(name="production").document.get("drain") is None


def merge(**spec: Any) -> list[dict[str, Any]]:
    return [{"target": {"kind": "Deployment"}, "merge": {"spec": spec}}]


def test_what_patches_change_is_told_and_that_nobody_could_be_asked(api: Api, platform: Platform) -> None:
    client = api(Scope.ADMIN)
    file = document(f"https://127.0.0.1:{free_port()}", patches=merge(minReadySeconds=7))
    new = client.put(f"{PRODUCTION}?dry_run=true", file, format="json").json()
    assert "+  minReadySeconds: 7" in new["patched"]
    assert new["untried"] == (
        "no service runs on cluster production yet: name a namespace in which patches are to be tried"
    )
    named = client.put(f"{PRODUCTION}?dry_run=true&namespace=default", file, format="json").json()
    assert "does not answer" in named["untried"]
    assert client.put(PRODUCTION, file, format="json").status_code == 201, "it can be saved while the cluster is away"
    platform.version(1)
    service = platform.apply(policy=None)
    service.cluster = Cluster.objects.get(name="production")
    service.save()
    used = client.put(f"{PRODUCTION}?dry_run=true", file, format="json").json()
    assert "does not answer" in used["untried"]
    assert client.put(f"{PRODUCTION}?dry_run=true", document(), format="json").json()["untried"] == ""


def test_a_wrong_file_is_refused_by_the_fields_name(api: Api) -> None:
    answer = api(Scope.ADMIN).put(PRODUCTION, document(drainn="1m"), format="json")
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "drainn"


def test_only_administrators_make_clusters(api: Api) -> None:
    assert api(Scope.WRITE).put(PRODUCTION, document(), format="json").status_code == 403
    assert api(Scope.WRITE).get(f"{PRODUCTION}/check").status_code == 403


def test_a_cluster_with_services_stays(api: Api, platform: Platform) -> None:
    client = api(Scope.ADMIN)
    client.put(PRODUCTION, document(f"https://127.0.0.1:{free_port()}"), format="json")
    platform.version(1)
    file = platform.document(policy=None)
    file["spec"]["cluster"] = "production"
    answer = client.put("/api/v1/services/default/digits", file, format="json")
    assert (answer.status_code, answer.json()["cluster"]) == (201, "production"), "a cluster that is away is no refusal"
    assert client.delete(PRODUCTION).json()["error"]["message"].startswith("cluster 'production' runs default/digits")
    assert client.get(PRODUCTION).json()["services"] == ["default/digits"]


def test_a_check_of_a_cluster_that_is_away_says_what_to_do(api: Api) -> None:
    client = api(Scope.ADMIN)
    client.put(PRODUCTION, document(f"https://127.0.0.1:{free_port()}"), format="json")
    answer = client.get(f"{PRODUCTION}/check?namespace=vision").json()
    assert answer["ok"] is False
    [finding] = answer["findings"]
    assert "does not answer" in finding["message"]
    assert "web and worker reach the address" in finding["remedy"]


def test_a_list_asks_the_database_as_often_for_many_clusters(api: Api) -> None:
    client = api(Scope.ADMIN)
    counts = []
    for number in range(3):
        for more in range(number * 3 + 1):
            name = f"production-{number}-{more}"
            client.put(f"/api/v1/clusters/{name}", document(name=name), format="json")
        with CaptureQueriesContext(connection) as asked:
            client.get("/api/v1/clusters")
        counts.append(len(asked))
    assert len(set(counts)) == 1
