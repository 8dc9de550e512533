"""Variables of a service make no file of a model's folder run, and no process of a model has the platform's secrets."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusters.services.clusters import cluster_check
from common.errors import InvalidInput
from deployments.models import Revision
from deployments.services import service_apply, service_plan
from events.models import Event
from integrations.clusters.base import Candidate, DesiredRevision, Exchange, Job, JobKind
from integrations.clusters.kubernetes.manifests import render
from integrations.clusters.kubernetes.manifests.jobs.job import job
from integrations.clusters.local.jobs import jobs
from integrations.clusters.local.jobs.replays import replay
from integrations.clusters.local.runtime import RUNTIME
from tests.deployments._support.platform import Platform
from tests.integrations._support.manifests import given
from tests.integrations._support.runtimes import Cluster
from tests.security._support.stowaways import Stowaway, stowaway

SECRETS = {
    "FAIRLEAD_SECRET_KEY": "the-secret-key-of-the-platform",
    "FAIRLEAD_TOKEN": "the-token-of-an-admin",
    "FAIRLEAD_DATABASE_URL": "postgres://fairlead:the-password@127.0.0.1/fairlead",
}
RECORDED = Exchange(
    "a", "s", "1", 1.0, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}, {}
)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stowaway:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return stowaway(tmp_path)


@pytest.fixture
def platform(db: None) -> Platform:
    return Platform()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.close()


def test_a_replica_of_a_stored_revision_runs_nothing_of_it_and_has_no_secret(cluster: Cluster, model: Stowaway) -> None:
    laid_out = cluster.layout.repositories / "default.digits-00001" / "digits" / "1"
    env = model.env | {"PYTHONPATH": f"{model.artifact}:{laid_out}", "OMP_NUM_THREADS": "1"}
    cluster.start(runtime=shlex.join(RUNTIME))
    cluster.apply(1, DesiredRevision("digits-00001", "digits", "1", model.uri, model.digest, 1, 100, env=env))
    cluster.until_ready(1)

    pid = cluster.pid("default.digits-00001-0")
    environ = Path(f"/proc/{pid}/environ").read_text().split("\0")

    assert model.ran() == []
    assert "OMP_NUM_THREADS=1" in environ, "what it may have it has"
    assert [each for each in environ if each.partition("=")[0] in {*SECRETS, *model.env}] == []
    for other in cluster.processes().values():
        if other != cluster.agent.pid:  # type: ignore[union-attr]
            held = Path(f"/proc/{other}/environ").read_text()
            assert not any(secret in held for secret in SECRETS.values()), "of the gateway neither"
    assert sorted(path.name for path in laid_out.iterdir()) == ["model.onnx"]


def test_a_job_runs_nothing_of_it(model: Stowaway, tmp_path: Path) -> None:
    result = jobs.run(Job(JobKind.PROFILE, model.uri, 60, env=model.env), tmp_path / "jobs")
    assert (result.exit_code, result.message) == (0, "")
    assert model.ran() == []


def test_a_job_has_no_secret(model: Stowaway, tmp_path: Path) -> None:
    tell = (*RUNTIME[:-2], "-c", "import os, json; print(json.dumps(dict(os.environ)))")
    told = jobs.run(Job(JobKind.INSPECT, model.uri, 60, env=model.env), tmp_path / "jobs", runtime=tell)
    assert {*SECRETS, *model.env} & json.loads(told.output).keys() == set()


def test_a_replay_runs_nothing_of_it(model: Stowaway, tmp_path: Path) -> None:
    candidate = Candidate("version 1", "digits", "1", model.uri, env=model.env)
    with replay(candidate, tmp_path / "jobs") as answer:
        assert answer(RECORDED).response["outputs"][0]["data"] == [3, 6, 9, 12]
    assert model.ran() == []


@pytest.mark.parametrize("allowed", [True, False])
def test_pods_are_isolated_and_have_no_such_variable(allowed: bool) -> None:
    desired, shares, options = given("transformer")
    options = replace(options, allow_python_models=allowed)
    env = {"PYTHONPATH": "/mnt/models", "LD_PRELOAD": "/mnt/models/weights.bin", "OWN": "1", "TZ": "UTC"}
    revisions = tuple(
        replace(each, env=env, is_code=True, transformer=each.transformer and replace(each.transformer, env=env))
        for each in desired.revisions
    )
    rendered = render(replace(desired, revisions=revisions), shares, options)
    made = [each for each in rendered if each["kind"] == "Deployment"]
    asked = Job(JobKind.TUNE, revisions[0].artifact_uri, 60, env=env, is_code=True)
    pods = [each["spec"]["template"]["spec"] for each in (*made, job(asked, "ask", options))]
    containers = [container for pod in pods for container in pod["containers"]]

    for container in containers:
        names = {each["name"] for each in container["env"]} & env.keys()
        assert names == ({"OWN", "TZ"} if allowed or container["name"] == "transformer" else {"TZ"})
        if container["name"] != "transformer":
            assert container["command"][:4] == ["python", "-I", "-m", "serving_runtime"]
    assert {each["name"] for each in containers} == {"runtime", "transformer", "ask"}


@pytest.mark.parametrize("name", ["PYTHONPATH", "LD_PRELOAD", "GCONV_PATH", "OPENSSL_CONF", "FAIRLEAD_URL", "WHATEVER"])
def test_a_service_file_with_such_a_variable_is_refused_by_name(platform: Platform, name: str) -> None:
    platform.version(1)
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["env"] = [{"name": name, "value": "/tmp/x"}]
    for ask in (
        lambda: service_plan(
            document=document, namespace="default", name="digits", actor="alice", now=platform.clock()
        ),
        lambda: service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock()),
    ):
        with pytest.raises(InvalidInput, match=f"^spec.predictor.model.env sets {name}: .*; leave it out") as refused:
            ask()
        assert refused.value.field == "spec.predictor.model.env"
    assert not Revision.objects.exists()


def test_a_stored_revision_goes_on_and_says_once_what_it_runs_without(platform: Platform) -> None:
    service = platform.live()
    Revision.objects.update(env={"PYTHONPATH": "/x", "OMP_NUM_THREADS": "1"})
    for _ in range(3):
        platform.turn()

    (event,) = Event.objects.filter(kind="RevisionVariablesLeftOut")
    found = [
        each for each in cluster_check(cluster=service.cluster, namespaces=(), now=datetime.now(UTC)) if not each.ok
    ]

    assert (event.service, event.revision) == (service, "digits-00001")
    assert event.message.startswith("digits-00001 runs without PYTHONPATH of spec.predictor.model.env: ")
    assert "OMP_NUM_THREADS" not in event.message
    assert event.message in [each.message for each in found]
    service.refresh_from_db()
    assert service.phase == "Ready"
