"""Why a pod does not serve, on a real cluster: what API server, scheduler and node say of it comes through."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from integrations.clusters.base import Desired, DesiredRevision, Failure, FailureReason, Resources
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from tests.cluster._support.removal import remove
from tests.cluster.harness import UNRULY_IMAGE, Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import model

pytestmark = pytest.mark.cluster
_WITHIN_S = 300.0
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with harness(plane, tmp_path_factory.mktemp("failures")) as running:
        yield running


class Service:
    """One service with one revision, on a cluster with options of its own."""

    def __init__(self, cluster: Harness, **options: Any) -> None:
        self.name = f"failing-{next(_numbers)}"
        self._cluster = cluster
        self._api = Api(cluster.plane.kubeconfig)
        self.driver = KubernetesDriver(self._api, replace(cluster.options, **options))

    def apply(self, content: bytes, **more: Any) -> None:
        stored = self._cluster.store(content)
        fields = {"artifact_digest": stored.digest, **more}
        revision = DesiredRevision(
            f"{self.name}-00001", self.name, "1", stored.uri, replicas=1, weight_percent=100, **fields
        )
        self.driver.apply(Desired("default", self.name, 1, (revision,)))

    def until(self, look: Callable[[Failure], object]) -> Failure:
        """Return the revision's last failure once it is as looked for; the service goes then."""
        deadline = time.monotonic() + _WITHIN_S
        try:
            while True:
                seen = self.driver.observe("default", self.name)
                found = seen.revisions[0].last_failure if seen.revisions else None
                if found is not None and look(found):
                    return found
                assert time.monotonic() < deadline, f"not within {_WITHIN_S:g} s: {seen}"
                time.sleep(0.2)
        finally:
            remove(self.driver, self.name, 2)
            self._api.close()


def reasons(failure: Failure) -> set[str]:
    return {event.reason for event in failure.events}


def test_a_model_that_is_none(cluster: Harness) -> None:
    service = Service(cluster)
    service.apply(b"garbage")
    found = service.until(lambda failure: failure.log and "BackOff" in reasons(failure))
    assert (found.reason, found.container, found.exit_code) == (FailureReason.MODEL_LOAD_FAILED, "runtime", 1)
    assert found.replica.startswith(f"{service.name}-00001-")
    assert "model.onnx is not an ONNX model" in found.message
    assert "model.onnx is not an ONNX model" in found.log[-1]


def test_files_that_are_not_those_of_the_digest(cluster: Harness) -> None:
    service = Service(cluster)
    service.apply(model(1), artifact_digest="sha256:" + "0" * 64)
    found = service.until(lambda failure: failure.log)
    assert (found.reason, found.container, found.exit_code) == (FailureReason.MODEL_LOAD_FAILED, "prepare", 2)
    assert "is not the one that was stored" in found.log[-1]


def test_an_image_that_is_not_there(cluster: Harness) -> None:
    service = Service(cluster, runtime_image="nowhere.example/missing:1")
    service.apply(model(1))
    found = service.until(lambda failure: "ImagePullBackOff" in failure.message and "BackOff" in reasons(failure))
    assert (found.reason, found.container, found.exit_code) == (FailureReason.IMAGE_PULL_FAILED, "prepare", None)
    assert "nowhere.example/missing:1" in found.message
    assert {"Failed", "BackOff"} <= reasons(found)
    assert found.log == ()


def test_a_runtime_that_wants_more_memory_than_it_may_have(cluster: Harness) -> None:
    service = Service(cluster)
    service.apply(model(1), resources=Resources(memory_bytes=4 << 20))
    found = service.until(lambda _: True)
    assert (found.reason, found.exit_code) == (FailureReason.OUT_OF_MEMORY, 137)
    assert "more memory than it may have" in found.message


def test_a_runtime_that_ends_again_and_again_keeps_secrets_to_itself(cluster: Harness) -> None:
    service = Service(cluster, runtime_image=UNRULY_IMAGE)
    service.apply(model(1), env={"MODEL_START": "fail", "MODEL_TOKEN": "s3cr3t-value"})
    found = service.until(lambda failure: failure.log and "BackOff" in reasons(failure))
    assert (found.reason, found.container, found.exit_code) == (FailureReason.RUNTIME_UNHEALTHY, "runtime", 3)
    assert "$(MODEL_TOKEN)" in "".join(found.log)
    assert "s3cr3t" not in repr(found)


def test_what_fits_on_no_node(cluster: Harness) -> None:
    service = Service(cluster)
    service.apply(model(1), resources=Resources(cpu_cores=1000))
    found = service.until(lambda failure: "FailedScheduling" in reasons(failure))
    assert (found.reason, found.exit_code, found.log) == (FailureReason.UNSCHEDULABLE, None, ())
    assert "Insufficient cpu" in found.message


def test_a_runtime_that_never_becomes_ready(cluster: Harness) -> None:
    service = Service(cluster, runtime_image=UNRULY_IMAGE, longest_start_s=6)
    service.apply(model(1), env={"MODEL_START": "never-ready"})
    found = service.until(lambda failure: {"Unhealthy", "Killing"} <= reasons(failure))
    assert (found.reason, found.exit_code) == (FailureReason.RUNTIME_UNHEALTHY, 137)
    probes = [event for event in found.events if event.reason == "Unhealthy"]
    assert any(event.message.startswith("Startup probe failed: ") for event in probes)
