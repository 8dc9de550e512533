"""JSON documents in the files of the local cluster: orders, the keys of callers, and what the agent observes. Pure.

What an earlier release wrote still parses: fields that are absent have their defaults, and unknown ones are ignored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from integrations.clusters.base import (
    Access,
    Autoscaling,
    CallerKeys,
    CompanionKind,
    Component,
    Cors,
    Desired,
    DesiredCompanion,
    DesiredPredictor,
    DesiredRevision,
    HeaderMatch,
    IssuerKeys,
    Limits,
    Logged,
    Logger,
    MatchKind,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
    RequestRate,
    Resources,
    RowRate,
    SecretKeyRef,
    SessionAffinity,
    Tap,
    TeamRate,
    behavior_from_json,
    behavior_json,
    failure_from_json,
)
from integrations.clusters.local.files import (
    DESIRED_SCHEMA,
    KEYS_SCHEMA,
    OBSERVED_SCHEMA,
    STATUS_SCHEMA,
    BadFileError,
    ClusterStatus,
    Order,
)
from integrations.machine.limits import Limit


def order_to_json(order: Order) -> dict[str, Any]:
    desired = order.desired
    return {
        "schema": DESIRED_SCHEMA,
        "deleted": order.deleted,
        "namespace": desired.namespace,
        "service": desired.service,
        "generation": desired.generation,
        "revisions": [revision_to_json(revision) for revision in desired.revisions],
        "preview": desired.preview,
        "request_timeout_s": desired.request_timeout_s,
        "takes_feedback": desired.takes_feedback,
        "affinity": None if desired.affinity is None else asdict(desired.affinity),
        "access": None if desired.access is None else asdict(desired.access),
        "cors": None if desired.cors is None else asdict(desired.cors),
        "limits": asdict(desired.limits),
    }


def order_from_json(value: Mapping[str, Any]) -> Order:
    """Parse the order in `value`; raises BadFileError naming what is missing or of the wrong kind."""
    try:
        affinity = value.get("affinity")
        desired = Desired(
            str(value["namespace"]),
            str(value["service"]),
            int(value["generation"]),
            tuple(revision_from_json(item) for item in value["revisions"]),
            preview=str(value.get("preview", "")),
            request_timeout_s=int(value.get("request_timeout_s", 0)),
            takes_feedback=value.get("takes_feedback") is True,
            affinity=None if affinity is None else SessionAffinity(**_known(SessionAffinity, affinity)),
            access=_access_from_json(value.get("access")),
            cors=_cors_from_json(value.get("cors")),
            limits=Limits(**_known(Limits, value.get("limits", {}))),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"the desired state cannot be read: {type(error).__name__}: {error}") from error
    return Order(desired, bool(value.get("deleted", False)))


def _access_from_json(value: Mapping[str, Any] | None) -> Access | None:
    if value is None:
        return None
    teams, users, keys = (tuple(value[name]) for name in ("teams", "users", "keys"))
    return Access(teams, users, keys, tuple(value.get("subjects", ())))


def _cors_from_json(value: Mapping[str, Any] | None) -> Cors | None:
    return None if value is None else Cors(tuple(map(str, value["origins"])), int(value["max_age_s"]))


def keys_to_json(keys: CallerKeys) -> dict[str, Any]:
    return {"schema": KEYS_SCHEMA, **asdict(keys)}


def keys_from_json(value: Mapping[str, Any]) -> CallerKeys:
    """Parse the keys in `value`; raises BadFileError naming what is missing or of the wrong kind."""
    try:
        return CallerKeys(
            str(value["issuer"]),
            str(value["audience"]),
            _public_from_json(value["public"]),
            tuple(map(str, value["revoked"])),
            tuple(
                IssuerKeys(
                    str(each["name"]), str(each["issuer"]), str(each["audience"]), _public_from_json(each["public"])
                )
                for each in value.get("issuers", ())
            ),
            tuple(RequestRate(**_known(RequestRate, each)) for each in value.get("rates", ())),
            tuple(TeamRate(**_known(TeamRate, each)) for each in value.get("team_rates", ())),
            tuple(RowRate(**_known(RowRate, each)) for each in value.get("row_rates", ())),
            *(tuple(map(str, value.get(name, ()))) for name in ("exhausted", "exhausted_keys", "exhausted_services")),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"the keys cannot be read: {type(error).__name__}: {error}") from error


def _public_from_json(keys: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], ...]:
    return tuple({str(name): str(part) for name, part in each.items()} for each in keys)


def revision_to_json(revision: DesiredRevision) -> dict[str, Any]:
    value = {field.name: getattr(revision, field.name) for field in fields(revision) if field.compare}
    own: dict[str, Any] = {
        "patches": [],
        "model_config": dict(revision.model_config),
        "env": dict(revision.env),
        "secret_env": {name: asdict(each) for name, each in revision.secret_env.items()},
        "resources": asdict(revision.resources),
        "match": [asdict(each) for each in revision.match],
        "tap": None if revision.tap is None else asdict(revision.tap),
        "autoscaling": _autoscaling_to_json(revision.autoscaling),
        "logger": None if revision.logger is None else asdict(revision.logger),
        "pool_copies": dict(revision.pool_copies),
        "custom": None if revision.custom is None else asdict(revision.custom),
        **{kind.value: _companion_to_json(getattr(revision, kind)) for kind in CompanionKind},
    }
    del value["artifact_bytes"], value["pod"]  # of use where there are disks to request, and pods
    return {**value, **own}


def revision_from_json(value: Mapping[str, Any]) -> DesiredRevision:
    own: dict[str, Any] = {
        "patches": (),
        "secret_env": {name: SecretKeyRef(**each) for name, each in value.get("secret_env", {}).items()},
        # An earlier release lacks it; then the agent's own permission to run models in Python decides.
        "is_code": bool(value.get("is_code", True)),
        "egress": value.get("egress"),  # None where an earlier release wrote it
        "resources": _resources_from_json(value.get("resources", {})),
        "match": _match_from_json(value),
        "tap": Tap(**value["tap"]) if value.get("tap") else None,
        "autoscaling": _autoscaling_from_json(value.get("autoscaling")),
        "logger": _logger_from_json(value),
        "custom": _custom_from_json(value.get("custom")),
        "pool_copies": {str(model): int(number) for model, number in value.get("pool_copies", {}).items()},
        **{kind.value: _companion_from_json(value.get(kind)) for kind in CompanionKind},
    }
    return DesiredRevision(**{**_known(DesiredRevision, value), **own})


def _custom_from_json(value: Mapping[str, Any] | None) -> DesiredPredictor | None:
    return DesiredPredictor(**{**_known(DesiredPredictor, value), **_words_from_json(value)}) if value else None


def _companion_to_json(its: DesiredCompanion | None) -> dict[str, Any] | None:
    """Return a companion's document; its autoscaling is of use where it has replicas of its own."""
    return None if its is None else asdict(replace(its, env=dict(its.env), autoscaling=None))


def _companion_from_json(value: Mapping[str, Any] | None) -> DesiredCompanion | None:
    if not value:
        return None
    own = {
        **_words_from_json(value),
        "secret_env": {name: SecretKeyRef(**each) for name, each in value.get("secret_env", {}).items()},
        "resources": _resources_from_json(value.get("resources", {})),
        "autoscaling": None,
    }
    return DesiredCompanion(**{**_known(DesiredCompanion, value), **own})


def _words_from_json(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(map(str, value.get(name, ()))) for name in ("command", "args")}


def _resources_from_json(value: Mapping[str, Any]) -> Resources:
    return Resources(**{**value, "products": tuple(value.get("products", ()))})


def _autoscaling_to_json(scaling: Autoscaling | None) -> dict[str, Any] | None:
    if scaling is None:
        return None
    behavior = behavior_json(scaling.behavior)
    said: dict[str, Any] = {"most": scaling.most, "targets": dict(scaling.targets)}
    return {**said, "behavior": behavior} if behavior else said


def _autoscaling_from_json(value: Mapping[str, Any] | None) -> Autoscaling | None:
    if not value:
        return None
    return Autoscaling(value["most"], value["targets"], behavior_from_json(value.get("behavior", {})))


def _logger_from_json(value: Mapping[str, Any]) -> Logger | None:
    found = value.get("logger")
    return Logger(found["url"], Logged(found["mode"])) if found else None


def _match_from_json(value: Mapping[str, Any]) -> tuple[HeaderMatch, ...]:
    return tuple(
        HeaderMatch(each["header"], MatchKind(each["kind"]), tuple(each["values"])) for each in value.get("match", ())
    )


def observed_to_json(observed: Observed) -> dict[str, Any]:
    return {"schema": OBSERVED_SCHEMA, **asdict(observed)}


def observed_from_json(value: Mapping[str, Any]) -> Observed:
    """Parse the service in `value`; raises BadFileError naming what is missing or of the wrong kind."""
    try:
        return _observed_from_json(value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"the status cannot be read: {type(error).__name__}: {error}") from error


def _observed_from_json(value: Mapping[str, Any]) -> Observed:
    revisions = tuple(
        ObservedRevision(
            **{
                **_known(ObservedRevision, revision),
                "match": _match_from_json(revision),
                "failure": failure_from_json(revision["failure"]) if revision.get("failure") else None,
                "replicas": tuple(_replica_from_json(replica) for replica in revision["replicas"]),
                "own": tuple(_replica_from_json(replica) for replica in revision.get("own", ())),
            }
        )
        for revision in value["revisions"]
    )
    return Observed(**{**_known(Observed, value), "revisions": revisions})


def _replica_from_json(value: Mapping[str, Any]) -> ObservedReplica:
    own = {
        "phase": ReplicaPhase(value["phase"]),
        "failure": failure_from_json(value["failure"]) if value.get("failure") else None,
    }
    return ObservedReplica(**{**_known(ObservedReplica, value), **own})


def cluster_status_to_json(status: ClusterStatus) -> dict[str, Any]:
    return {"schema": STATUS_SCHEMA, **asdict(status)}


def cluster_status_from_json(value: Mapping[str, Any]) -> ClusterStatus:
    """Parse the status in `value`; raises BadFileError naming what is missing or of the wrong kind."""
    try:
        components = tuple(Component(**_known(Component, item)) for item in value["components"])
        limits = tuple(Limit(**_known(Limit, item)) for item in value.get("limits", ()))
        return ClusterStatus(**{**_known(ClusterStatus, value), "components": components, "limits": limits})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"the cluster's status cannot be read: {type(error).__name__}: {error}") from error


def _known(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of `value` that `kind` has fields for; a newer writer may have added others."""
    names = {field.name for field in fields(kind)}
    return {name: item for name, item in value.items() if name in names}
