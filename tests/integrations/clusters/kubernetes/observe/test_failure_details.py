"""For which pods events and logs are read, and for how long."""

from dataclasses import dataclass, field
from typing import Any

from common.errors import NotPermitted
from integrations.clusters.base import Failure, FailureReason, ObservedReplica, ReplicaPhase
from integrations.clusters.kubernetes.observe.failure_details import Diagnosis

EVENT = {
    "metadata": {"creationTimestamp": "2026-01-01T12:00:00Z"},
    "type": "Warning",
    "reason": "BackOff",
    "message": "again",
}


@dataclass
class Server:
    """An API server that answers after so many seconds, or refuses; time is its own."""

    takes_s: float = 0.0
    refuses: bool = False
    now: float = 1_800_000_000.0
    asked: list[tuple[str, str, float]] = field(default_factory=list)

    def find(self, kind: Any, namespace: str, about: dict[str, str], *, most: int, timeout_s: float) -> list[Any]:
        self._answer("events", about["involvedObject.name"], timeout_s)
        return [EVENT]

    def log(self, namespace: str, pod: str, container: str, *, timeout_s: float, **_: Any) -> str:
        self._answer("log", pod, timeout_s)
        return "loading\nit broke\n"

    def _answer(self, what: str, pod: str, timeout_s: float) -> None:
        self.asked.append((what, pod, timeout_s))
        self.now += min(self.takes_s, timeout_s)
        if self.refuses:
            raise NotPermitted("not yours")

    def diagnosis(self) -> Diagnosis:
        return Diagnosis(self, lambda: self.now, lambda: self.now)  # type: ignore[arg-type]


def found(
    name: str, phase: ReplicaPhase, *, at: float = 1.0, made: str = "2026-01-01T12:00:00Z"
) -> tuple[dict[str, Any], ObservedReplica]:
    pod = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": made},
        "status": {"containerStatuses": [{"name": "runtime", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
    }
    failure = Failure(FailureReason.RUNTIME_UNHEALTHY, "it broke", at, 3, name, "runtime")
    return pod, ObservedReplica(name, phase, failure=failure)


def test_nothing_is_read_of_pods_that_serve_or_leave() -> None:
    server = Server()
    well = [found("a", ReplicaPhase.READY), found("b", ReplicaPhase.DRAINING)]
    assert server.diagnosis().explain(well) == {}
    assert server.asked == []


def test_a_failing_pod_gets_its_events_and_its_log_once() -> None:
    server = Server()
    diagnosis = server.diagnosis()
    for _ in range(3):
        failure = diagnosis.explain([found("a", ReplicaPhase.BACKING_OFF)])["a"]
        assert ([each.reason for each in failure.events], failure.log) == (["BackOff"], ("loading", "it broke"))
    assert [what for what, _, _ in server.asked] == ["events", "log"]
    server.now += 20
    diagnosis.explain([found("a", ReplicaPhase.BACKING_OFF)])
    assert [what for what, _, _ in server.asked] == ["events", "log"] * 2


def test_another_failure_of_the_same_pod_is_read_at_once() -> None:
    server = Server()
    diagnosis = server.diagnosis()
    diagnosis.explain([found("a", ReplicaPhase.BACKING_OFF, at=1)])
    diagnosis.explain([found("a", ReplicaPhase.BACKING_OFF, at=2)])
    assert len(server.asked) == 4


def test_a_look_is_bounded_in_pods_and_the_rest_has_its_turn_later() -> None:
    server = Server()
    diagnosis = server.diagnosis()
    failing = [found(name, ReplicaPhase.BACKING_OFF, at=at) for at, name in enumerate("abcde")]
    assert list(diagnosis.explain(failing)) == ["e", "d", "c"]
    assert sorted(diagnosis.explain(failing)) == ["a", "b", "c", "d", "e"]


def test_a_look_is_bounded_in_time_and_the_failure_stays_as_the_status_told_it() -> None:
    server = Server(takes_s=60)
    began = server.now
    explained = server.diagnosis().explain([found(name, ReplicaPhase.BACKING_OFF) for name in "abc"])
    assert server.now - began <= 2.5
    assert all(timeout_s <= 2 for _, _, timeout_s in server.asked)
    assert explained["a"].message == "it broke"


def test_where_the_role_gives_no_right_to_look_the_failure_stays_as_the_status_told_it() -> None:
    explained = Server(refuses=True).diagnosis().explain([found("a", ReplicaPhase.BACKING_OFF)])
    assert (explained["a"].message, explained["a"].log, explained["a"].events) == ("it broke", (), ())
