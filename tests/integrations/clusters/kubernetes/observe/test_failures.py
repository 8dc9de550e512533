"""What a pod's status and events say of its failure."""

from typing import Any

import pytest

from integrations.clusters.base import FailureReason, ReplicaPhase
from integrations.clusters.kubernetes.observe.failures import (
    REFUSED,
    LogOf,
    failure_by_events,
    failure_of,
    is_slow,
    log_of,
    moment,
)
from integrations.clusters.kubernetes.observe.observation import replica_of_pod
from serving_runtime.server.commands import prepare

BEGAN, ENDED = "2026-01-01T12:00:00Z", "2026-01-01T12:00:09Z"


def pod(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    env = [{"name": "TOKEN", "value": "s3cr3t-value"}]
    return {
        "metadata": {"name": "digits-00001-abc", "uid": "1", "creationTimestamp": BEGAN},
        "spec": {"containers": [{"name": "runtime", "env": env}]},
        "status": {"containerStatuses": containers, **status},
    }


def container(state: dict[str, Any], last: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"name": "runtime", "state": state, "lastState": last or {}, "restartCount": 1}


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "finishedAt": ENDED}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def unschedulable() -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}
    return pod(conditions=[{**condition, "lastTransitionTime": ENDED}])


@pytest.mark.parametrize(
    ("gates", "labels", "sentence"),
    [
        (
            ["kueue.x-k8s.io/admission"],
            {"kueue.x-k8s.io/queue-name": "models"},
            "waits in the queue models until Kueue",
        ),
        (["kueue.x-k8s.io/admission", "a.com/b"], {}, "waits in its queue until Kueue"),
        (["example.com/quota", "example.com/network"], {}, "are removed: example.com/quota, example.com/network"),
    ],
)
def test_a_gated_pod_says_what_it_waits_for(gates: list[str], labels: dict[str, str], sentence: str) -> None:
    found = unschedulable()
    found["metadata"]["labels"] = labels
    found["spec"]["schedulingGates"] = [{"name": each} for each in gates]
    failure = failure_of(found)
    assert failure is not None
    assert (failure.reason, failure.is_final) == (FailureReason.UNSCHEDULABLE, False)
    assert sentence in failure.message


@pytest.mark.parametrize(
    ("found", "reason", "exit_code", "sentence"),
    [
        pytest.param(
            pod(container(waiting("CrashLoopBackOff"), ended(1, message="loading\nno model: s3cr3t-value\n"))),
            "ModelLoadFailed",
            1,
            "runtime ended with exit code 1: no model: $(TOKEN)",
            id="a model that cannot be loaded",
        ),
        pytest.param(
            pod(container({"running": {"startedAt": ENDED}}, ended(139))),
            "RuntimeUnhealthy",
            139,
            "runtime ended with exit code 139",
            id="a crash, started again",
        ),
        pytest.param(
            pod(container(ended(137, "OOMKilled"))),
            "OOMKilled",
            137,
            "runtime was killed, as it wanted more memory than it may have",
            id="out of memory",
        ),
        pytest.param(
            pod(container(waiting("ImagePullBackOff", "no such image"))),
            "ImagePullFailed",
            None,
            "runtime waits (ImagePullBackOff): no such image",
            id="no image",
        ),
        pytest.param(
            pod(container(waiting("CreateContainerConfigError", "secret not found"))),
            "ContainerNotStarted",
            None,
            "runtime waits (CreateContainerConfigError): secret not found",
            id="no container",
        ),
        pytest.param(unschedulable(), "Unschedulable", None, "no node takes it: 0/3 nodes fit", id="no node"),
        pytest.param(
            pod(
                phase="Failed",
                reason="Evicted",
                message='Usage of EmptyDir volume "models" exceeds the limit "21Gi". ',
            ),
            "Evicted",
            None,
            "it was evicted, since its files in the volume models exceed the limit of 21Gi; write less there, or raise "
            "sizeLimit of the volume models by spec.patches",
            id="a full volume",
        ),
        pytest.param(
            pod(
                phase="Failed",
                reason="Evicted",
                message="Pod ephemeral local storage usage exceeds the total limit of containers 30Gi. ",
            ),
            "Evicted",
            None,
            "it was evicted, since its files and logs exceed the limit of 30Gi on the node's disk",
            id="more on disk than it may have",
        ),
        pytest.param(
            pod(phase="Failed", reason="Evicted", message="disk is full"),
            "Evicted",
            None,
            "Evicted: disk is full",
            id="evicted",
        ),
    ],
)
def test_the_status_tells_why(found: dict[str, Any], reason: str, exit_code: int | None, sentence: str) -> None:
    failure = failure_of(found)
    assert failure is not None
    assert (failure.reason, failure.exit_code, failure.message) == (reason, exit_code, sentence)
    assert failure.replica == "digits-00001-abc"


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pod(container(waiting("ContainerCreating"))), id="being made"),
        pytest.param(pod(container({"running": {"startedAt": BEGAN}})), id="running"),
        pytest.param(pod(container(ended(0, "Completed"))), id="ended well"),
        pytest.param(pod(), id="nothing is said yet"),
    ],
)
def test_what_only_takes_its_time_has_not_failed(found: dict[str, Any]) -> None:
    assert failure_of(found) is None


@pytest.mark.parametrize(
    ("state", "last", "of"),
    [
        pytest.param(waiting("CrashLoopBackOff"), ended(3), LogOf("runtime", previous=False), id="it waits"),
        pytest.param({"running": {}}, ended(3), LogOf("runtime", previous=True), id="it runs again"),
        pytest.param(ended(3), None, LogOf("runtime", previous=False), id="it has just ended"),
        pytest.param(waiting("ErrImagePull"), None, None, id="it never ran"),
    ],
)
def test_the_log_is_that_of_the_process_that_failed(state: Any, last: Any, of: LogOf | None) -> None:
    found = pod(container(state, last))
    failure = failure_of(found)
    assert failure is not None
    assert log_of(found, failure) == of


def event(reason: str, message: str, kind: str = "Warning", **more: Any) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": BEGAN}, "type": kind, "reason": reason, "message": message, **more}


def test_a_slow_pod_is_held_up_by_its_newest_warning() -> None:
    mount = event("FailedMount", "volume s3cr3t-value is not there", lastTimestamp=ENDED, count=4)
    events = [mount, event("Scheduled", "on node-1", "Normal")]
    failure = failure_by_events(pod(), events, {"TOKEN": "s3cr3t-value"})
    assert failure is not None
    assert (failure.reason, failure.at) == (FailureReason.CONTAINER_NOT_STARTED, moment(ENDED))
    assert failure.message == "it is not ready: volume $(TOKEN) is not there"
    assert [(each.reason, each.count) for each in failure.events] == [("Scheduled", 1), ("FailedMount", 4)]


def test_a_readiness_probe_that_fails_is_trouble_and_a_startup_probe_is_loading() -> None:
    assert failure_by_events(pod(), [event("Unhealthy", "Startup probe failed: refused")], {}) is None
    failure = failure_by_events(pod(), [event("Unhealthy", "Readiness probe failed: 503")], {})
    assert failure is not None
    assert failure.reason is FailureReason.RUNTIME_UNHEALTHY


def test_the_schedulers_way_of_recording_events_is_read_too() -> None:
    new = event("FailedScheduling", "no", eventTime=BEGAN, series={"count": 7, "lastObservedTime": ENDED})
    failure = failure_by_events(pod(), [new], {})
    assert failure is not None
    assert (failure.events[0].count, failure.events[0].at) == (7, moment(ENDED))


def test_a_pod_is_slow_after_half_a_minute_unless_it_leaves() -> None:
    found = pod()
    assert not is_slow(found, moment(BEGAN) + 30)
    assert is_slow(found, moment(BEGAN) + 31)
    found["metadata"]["deletionTimestamp"] = ENDED
    assert not is_slow(found, moment(BEGAN) + 31)


def test_a_replica_that_serves_again_remembers_its_failure_and_says_nothing_of_it() -> None:
    found = pod(container({"running": {"startedAt": ENDED}}, ended(139)), podIP="10.0.0.1")
    seen = replica_of_pod(found, {"digits-00001-abc"})
    assert (seen.phase, seen.message, seen.restarts) == (ReplicaPhase.READY, "", 1)
    assert seen.failure is not None
    assert replica_of_pod(found, set()).message == "runtime ended with exit code 139"


@pytest.mark.parametrize(
    ("ip", "url"),
    [("10.0.0.1", "http://10.0.0.1:8002/metrics"), ("fd00::7", "http://[fd00::7]:8002/metrics"), ("", "")],
)
def test_metrics_are_at_the_address_of_either_family(ip: str, url: str) -> None:
    found = pod(container({"running": {"startedAt": ENDED}}), podIP=ip)
    assert replica_of_pod(found, set()).metrics_url == url


@pytest.mark.parametrize(
    ("name", "code", "is_final"),
    [
        pytest.param("prepare", prepare.REFUSED, True, id="a model that does not go with what was asked"),
        pytest.param("prepare", 2, False, id="a transfer that broke off"),
        pytest.param("runtime", prepare.REFUSED, False, id="another container"),
    ],
)
def test_what_prepare_refuses_is_final(name: str, code: int, is_final: bool) -> None:
    found = failure_of(pod({**container(ended(code)), "name": name}))
    assert REFUSED == prepare.REFUSED
    assert found is not None
    assert found.is_final is is_final


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            'secret "hugging-face" not found',
            "which namespace team-a of the cluster does not have; create it, then retry",
        ),
        (
            "couldn't find key token in Secret team-a/hugging-face",
            "which does not have that key; add it to the Secret, then retry",
        ),
    ],
)
def test_a_missing_secret_is_final_and_says_what_to_create(said: str, words: str) -> None:
    found = pod(container(waiting("CreateContainerConfigError", said)))
    found["metadata"]["namespace"] = "team-a"
    reference = {"secretKeyRef": {"name": "hugging-face", "key": "token"}}
    found["spec"]["containers"][0]["env"].append({"name": "HF_TOKEN", "valueFrom": reference})
    failure = failure_of(found)
    assert failure is not None
    assert failure.message == f"HF_TOKEN is key token of Secret hugging-face, {words}"
    assert failure.is_final


def test_another_cause_of_a_container_that_cannot_be_configured_stays_as_it_was() -> None:
    found = pod(container(waiting("CreateContainerConfigError", 'configmap "x" not found')))
    found["metadata"]["namespace"] = "team-a"
    failure = failure_of(found)
    assert failure is not None
    assert failure.message == 'runtime waits (CreateContainerConfigError): configmap "x" not found'
    assert not failure.is_final
