"""Wait reason of a service, beside or without a rollout. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from deployments.domain.waits.wait import Wait


class Condition(StrEnum):
    """The wait condition of a service, for programs."""

    IMPORTING = "ImportingModel"
    IMPORT_FAILED = "ImportFailed"
    STARTING = "FirstReplicaStarting"
    REPLICAS_NOT_READY = "ReplicasNotReady"
    CLUSTER_UNAVAILABLE = "ClusterUnavailable"
    CLUSTER_REFUSES = "ClusterRefuses"
    WAITING_FOR_GATEWAY = "WaitingForGateway"
    RESTARTING = "ReplicasRestarting"
    ALIAS_REFUSED = "AliasRefused"
    STOPPING = "Stopping"
    DRAINING = "Draining"


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """The recorded facts of a service.

    Attributes:
        live: it has answered clients.
        standing: what it waits for on the cluster; None for nothing.
        reason: the sentence of that.
        import_note: progress of the import that it waits for; empty without one. `import_failed`: the import failed.
        stopped: it does not serve until resumed.
        alias_problem: why its alias's version is not rolled out; empty where it is.
    """

    deleting: bool
    live: bool
    standing: Condition | None
    reason: str
    import_note: str = ""
    import_failed: bool = False
    alias_problem: str = ""
    stopped: bool = False


def condition_of(facts: ServiceFacts) -> Condition | None:
    """Return the service's wait condition; conditions that keep clients from answers come first."""
    if facts.deleting:
        return Condition.DRAINING
    if facts.standing is not None:
        return facts.standing
    if facts.import_note:
        return Condition.IMPORT_FAILED if facts.import_failed else Condition.IMPORTING
    if not facts.live and not facts.stopped:
        return Condition.STARTING
    return Condition.ALIAS_REFUSED if facts.alias_problem else None


def wait_of_service(facts: ServiceFacts, since: datetime, rollout: Wait | None) -> Wait | None:
    """Return why the service waits: by itself, else because its rollout does; None where it does not wait.

    Args:
        since: when its own condition began.
        rollout: why the rollout in progress waits; None without one.
    """
    condition = condition_of(facts)
    if rollout is not None and condition not in _BEFORE_ROLLOUT:
        return rollout
    if condition is None:
        return None
    evidence = facts.reason
    if condition in (Condition.IMPORTING, Condition.IMPORT_FAILED):
        evidence = facts.import_note
    if condition is Condition.ALIAS_REFUSED:
        evidence = f"what its alias means now is not rolled out: {facts.alias_problem}"
    return Wait(condition.value, evidence, None, _CHANGES_WHEN[condition], since)


_BEFORE_ROLLOUT = frozenset(
    {
        Condition.DRAINING,
        Condition.REPLICAS_NOT_READY,
        Condition.CLUSTER_UNAVAILABLE,
        Condition.CLUSTER_REFUSES,
    }
)
_CHANGES_WHEN: Mapping[Condition, str] = {
    Condition.IMPORTING: "the files are here and their check has ended; the service then turns to the new version",
    Condition.IMPORT_FAILED: "somebody mends what the sentence says and applies the service file again",
    Condition.STARTING: "a replica of its first revision becomes ready; from then on clients get answers",
    Condition.REPLICAS_NOT_READY: "as many replicas of the stable revision as minReplicas asks for become ready",
    Condition.CLUSTER_UNAVAILABLE: "the cluster can be read again; what runs goes on meanwhile",
    Condition.CLUSTER_REFUSES: "somebody mends what the sentence says; it is tried again with every turn",
    Condition.WAITING_FOR_GATEWAY: "the gateway confirms that all requests go to the stable revision",
    Condition.RESTARTING: "every replica has been replaced by a new one, one after the other",
    Condition.ALIAS_REFUSED: "the alias moves to a version that fits, or somebody approves this one or rolls it out "
    "knowingly",
    Condition.STOPPING: "its replicas have finished what they had; then nothing of it runs until it is resumed",
    Condition.DRAINING: "its replicas have finished what they had; then the service is gone",
}
