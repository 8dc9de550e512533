"""Questions about a model as Jobs on a real cluster."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import Job, JobKind, Resources
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.jobs.jobs import TIMED_OUT
from integrations.clusters.kubernetes.manifests.jobs import job as manifests
from integrations.clusters.kubernetes.manifests.names import JOB
from integrations.clusters.kubernetes.options import Options
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import model, until

pytestmark = pytest.mark.cluster
_LONG_S = 300.0


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("jobs")) as running:
        yield running


@pytest.fixture
def options(cluster: Harness) -> Options:
    return replace(cluster.options, jobs_namespace="default")


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    api = Api(plane.kubeconfig)
    yield api
    left = api.list(resource_types.JOB, "default", {"app.kubernetes.io/managed-by": "fairlead"})
    assert [each for each in left if "deletionTimestamp" not in each["metadata"]] == []
    until(
        lambda: (
            not [
                each
                for each in api.list(resource_types.POD, "default", {})
                if JOB in each["metadata"].get("labels", {})
            ]
        ),
        "",
        300,
    )
    api.close()


def asked(cluster: Harness, kind: JobKind, content: bytes, timeout_s: float = _LONG_S, digest: str = "") -> Job:
    stored = cluster.store(content)
    return Job(kind, stored.uri, timeout_s, digest or stored.digest)


@pytest.mark.parametrize("kind", [JobKind.INSPECT, JobKind.PROFILE])
def test_a_model_is_asked_and_nothing_stays(cluster: Harness, options: Options, api: Api, kind: JobKind) -> None:
    result = KubernetesDriver(api, options).run(asked(cluster, kind, model(1)))
    assert (result.exit_code, result.message) == (0, "")
    assert json.loads(result.output)["schema"] == f"fairlead.{kind}/v1"


def test_a_tuning_says_how_far_it_is_and_nothing_stays(cluster: Harness, options: Options, api: Api) -> None:
    said: list[str] = []
    arguments = ("--max-latency-p99-ms=10000", "--budget=15s", "--window=0.2s", "--max-concurrency=4")
    order = replace(asked(cluster, JobKind.TUNE, model(1)), arguments=arguments, env={"MODEL_TOKENS": "7"})
    result = KubernetesDriver(api, options).run(order, said.append)
    assert (result.exit_code, result.message) == (0, "")
    assert json.loads(result.output)["chosen"]["requests_per_s"] > 0
    assert any("fairlead.tune-progress/v1" in line for line in said)


def test_a_model_that_is_none_is_refused_in_the_runtimes_words(cluster: Harness, options: Options, api: Api) -> None:
    result = KubernetesDriver(api, options).run(asked(cluster, JobKind.INSPECT, b"garbage"))
    assert result.exit_code == 2
    assert "model.onnx is not an ONNX model" in json.loads(result.output)["error"]
    assert "model.onnx is not an ONNX model" in result.message


def test_files_that_are_others_are_told(cluster: Harness, options: Options, api: Api) -> None:
    other = asked(cluster, JobKind.INSPECT, model(1), digest="sha256:" + "0" * 64)
    result = KubernetesDriver(api, options).run(other)
    assert result.exit_code == 2
    assert result.output == ""
    assert "is not the one that was stored" in result.message


def test_what_fits_on_no_node_is_told_at_the_timeout(
    cluster: Harness, options: Options, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "WAITS_FOR_NODE_S", 4.0)
    driver = KubernetesDriver(api, replace(options, defaults=Resources(1000, 1 << 30)))
    result = driver.run(asked(cluster, JobKind.PROFILE, model(1), timeout_s=4))
    assert result.exit_code == TIMED_OUT
    assert result.message.startswith("the profile of the model did not finish within 4 s: no node takes it: ")


def test_an_image_that_is_not_there_is_told_before_the_timeout(cluster: Harness, options: Options, api: Api) -> None:
    driver = KubernetesDriver(api, replace(options, runtime_image="nowhere.example/missing:1"))
    with pytest.raises(Unavailable, match=r"cannot be run on the cluster: prepare waits .*nowhere\.example/missing:1"):
        driver.run(asked(cluster, JobKind.INSPECT, model(1)))


def test_a_job_whose_worker_was_killed_ends_at_its_deadline_and_is_removed(
    cluster: Harness, options: Options, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "REMOVED_AFTER_S", 1)
    monkeypatch.setattr(manifests, "WAITS_FOR_NODE_S", 1.0)
    nowhere = replace(options, defaults=Resources(1000, 1 << 30))
    made = api.create(manifests.job(asked(cluster, JobKind.INSPECT, model(1), timeout_s=3), "left-behind", nowhere))
    assert made["spec"]["activeDeadlineSeconds"] == 4
    until(lambda: api.get(resource_types.JOB, "default", "left-behind") is None, "the Job is removed", _LONG_S)


def test_a_namespace_that_is_not_there_is_told(cluster: Harness, options: Options, api: Api) -> None:
    driver = KubernetesDriver(api, replace(options, jobs_namespace="nowhere"))
    with pytest.raises(InvalidInput, match=r"namespace nowhere, which the cluster has not.*jobs\.namespace"):
        driver.run(asked(cluster, JobKind.INSPECT, model(1)))
