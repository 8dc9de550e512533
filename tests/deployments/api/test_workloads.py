"""A replica gets what its own service has, with a token that its cluster vouches for; nobody else gets anything."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.asserts import assertNumQueries  # type: ignore[attr-defined]
from pytest_django.fixtures import Settings

from deployments.api.workloads import access
from deployments.models import Revision
from integrations.clusters.base import JobIdentity, WorkloadIdentity
from jobs.domain.attempts import Status
from recordings.models import Replay
from recordings.services.recordings import RecordingOrder, recording_start
from registry.models import ModelVersion
from tests import scenes
from tests.deployments._support.fakes import FakeCluster
from tests.deployments._support.workloads import cluster_of, stored_model

pytestmark = pytest.mark.django_db
POD, OTHER, GONE = "pod.of.digits", "pod.of.other", "pod.of.gone"
CONTENT = bytes(range(256)) * 10


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    """Give a cluster that knows three pods."""
    pods = {POD: "digits", OTHER: "other", GONE: "gone"}
    workloads = {token: WorkloadIdentity("default", name, f"{name}-1-abc") for token, name in pods.items()}
    with cluster_of(monkeypatch, workloads, [access]) as fake:
        yield fake


@pytest.fixture
def digest(settings: Settings, tmp_path: Path) -> str:
    """Return the digest of the model that the service `digits` has, and not the service `other`."""
    found = stored_model(settings, tmp_path, CONTENT)
    scenes.service("digits", 1)
    scenes.service("other", 2)
    ModelVersion.objects.filter(number=1).update(digest=found)
    Revision.objects.filter(service__name="digits").update(artifact_digest=found)
    return found


def ask(digest: str, token: str = POD, *, cluster: str = "local", at: str = "127.0.0.1", **headers: str) -> Any:
    address = f"/api/v1/clusters/{cluster}/workloads/artifacts/{digest}"
    return Client().get(address, headers={"Authorization": f"Bearer {token}", **headers}, REMOTE_ADDR=at)


def test_a_replica_gets_its_model(cluster: FakeCluster, digest: str) -> None:
    answer = ask(digest)
    assert (answer.status_code, b"".join(answer)) == (200, CONTENT)
    assert answer["Content-Disposition"] == 'attachment; filename="model.onnx"'
    assert answer["ETag"] == f'"{digest}"'


def test_it_goes_on_where_it_was_broken_off(cluster: FakeCluster, digest: str) -> None:
    answer = ask(digest, Range="bytes=1000-")
    assert (answer.status_code, b"".join(answer)) == (206, CONTENT[1000:])


def test_a_version_that_is_tried_on_recorded_requests_is_given_until_that_ends(
    cluster: FakeCluster, digest: str
) -> None:
    assert ask(digest, OTHER).status_code == 404
    order = RecordingOrder("They agreed in writing.")
    now = timezone.now()
    recording = recording_start(namespace="default", name="other", order=order, actor="test", now=now)
    row = scenes.replay(recording)
    row.model_version = ModelVersion.objects.get(digest=digest)
    row.save()
    assert ask(digest, OTHER).status_code == 200
    Replay.objects.update(status=Status.DONE)
    assert ask(digest, OTHER).status_code == 404


def test_a_job_gets_the_model_that_it_asks_about_while_that_is_checked(
    cluster: FakeCluster, digest: str, settings: Settings
) -> None:
    cluster.workloads["pod.of.job"] = JobIdentity("fairlead-jobs", "fairlead-inspect-abc", digest)
    cluster.workloads["pod.of.another"] = JobIdentity("fairlead-jobs", "fairlead-inspect-def", "sha256:" + "0" * 64)
    assert ask(digest, "pod.of.job").status_code == 404
    ModelVersion.objects.filter(digest=digest).update(status="PENDING")
    assert ask(digest, "pod.of.job").status_code == 200
    assert ask(digest, "pod.of.another").status_code == 404
    settings.DEFAULT_CLUSTER = "elsewhere"
    assert ask(digest, "pod.of.job").status_code == 404


@pytest.mark.parametrize(
    ("token", "asked", "status"),
    [
        pytest.param(OTHER, {}, 404, id="another service's model"),
        pytest.param(GONE, {}, 403, id="a pod of no service"),
        pytest.param("not.a.known", {}, 401, id="a token that the cluster does not know"),
        pytest.param("flt_0123456789", {}, 401, id="a token of ours"),
        pytest.param("a.b." + "c" * 9000, {}, 401, id="a token too large to be one"),
        pytest.param(POD, {"cluster": "elsewhere"}, 401, id="a cluster that is not there"),
        pytest.param(POD, {"digest": "sha256:" + "0" * 64}, 404, id="a model that nobody has"),
        pytest.param(POD, {"digest": ".."}, 404, id="no digest"),
    ],
)
def test_what_is_refused(cluster: FakeCluster, digest: str, token: str, asked: dict[str, str], status: int) -> None:
    answer = ask(asked.pop("digest", digest), token, **asked)
    assert (answer.status_code, set(answer.json())) == (status, {"error"})


def test_no_token_is_refused_before_the_cluster_is_asked(cluster: FakeCluster, digest: str) -> None:
    address = f"/api/v1/clusters/local/workloads/artifacts/{digest}"
    assert Client().get(address).status_code == 401
    assert Client().get(address, headers={"Authorization": f"Basic {POD}"}).status_code == 401
    assert ask(digest, "flt_0123456789").status_code == 401
    assert cluster.asked_tokens == []


def test_a_cluster_is_asked_once_for_a_token_be_it_good_or_bad(cluster: FakeCluster, digest: str) -> None:
    for token in (POD, POD, "not.a.known", "not.a.known"):
        ask(digest, token)
    assert cluster.asked_tokens == [POD, "not.a.known"]


def test_a_token_counts_on_its_own_cluster_alone(cluster: FakeCluster, digest: str) -> None:
    assert ask(digest).status_code == 200
    assert ask(digest, cluster="elsewhere").status_code == 401


def test_a_flood_of_tokens_from_one_address_does_not_reach_the_cluster(
    cluster: FakeCluster, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access.LookUps, "per_minute", 3)
    answers = [ask(digest, f"a.b.{number}") for number in range(5)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    assert int(answers[-1]["Retry-After"].split(".")[0]) <= 60
    assert len(cluster.asked_tokens) == 3


def test_a_flood_from_many_addresses_of_one_network_of_ipv6_does_not_either(
    cluster: FakeCluster, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host of IPv6 has 2^64 addresses."""
    monkeypatch.setattr(access.LookUps, "per_minute", 3)
    answers = [ask(digest, f"a.b.{number}", at=f"2001:db8:7::{number}") for number in range(1, 6)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    assert ask(digest, "a.b.9", at="2001:db8:8::1").status_code == 401


def test_one_pod_cannot_ask_without_end(cluster: FakeCluster, digest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access.Requests, "per_minute", 2)
    assert [ask(digest).status_code for _ in range(3)] == [200, 200, 429]


def test_a_cluster_that_is_away_is_worth_another_try(cluster: FakeCluster, digest: str) -> None:
    cluster.away = "the API server does not answer"
    assert ask(digest).status_code == 503
    cluster.away = ""
    assert ask(digest).status_code == 200


def test_the_tokens_are_in_no_log(cluster: FakeCluster, digest: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        ask(digest)
        ask(digest, "not.a.known")
    assert "pod.of" not in caplog.text
    assert "not.a.known" not in caplog.text


def test_a_request_with_a_known_token_takes_few_queries(cluster: FakeCluster, digest: str) -> None:
    ask(digest)
    with assertNumQueries(2):
        ask(digest)
