"""Files between driver and agent, and their JSON. Each file is replaced by one rename, never edited.

cluster/keys.json                            driver -> agent: `CallerKeys`; without it, no key is valid
cluster/desired/<namespace>.<service>.json   driver -> agent: `Desired`; `deleted` marks a service that shall go
cluster/secrets/<namespace>.<service>.json   driver -> agent: values of secrets that the service uses; mode 0600
cluster/status/<namespace>.<service>.json    agent -> driver: `Observed`
cluster/status.json                          agent -> driver: heartbeat and `Component`s
cluster/private/<namespace>.<replica>/        a replica's own folder: temporary files, and the runtime's port file
cluster/sockets/<digest of its name>/        what a replica listens on, unless this path is too long (`agent.sockets`)
cluster/access-log/                          Envoy -> worker: a line for each request (`access_log_files`)
cluster/payloads/                            agent and replicas -> driver: what taps recorded (`payloads`)
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from integrations.clusters.base import (
    Access,
    Autoscaling,
    CallerKeys,
    Component,
    Cors,
    Desired,
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
    SecretKeyRef,
    SessionAffinity,
    Tap,
    TeamRate,
    behavior_from_json,
    behavior_json,
    failure_from_json,
)
from integrations.machine.limits import Limit

DESIRED_SCHEMA = "fairlead.desired/v1"
KEYS_SCHEMA = "fairlead.caller-keys/v1"
OBSERVED_SCHEMA = "fairlead.observed/v1"
SECRETS_SCHEMA = "fairlead.secrets/v1"
STATUS_SCHEMA = "fairlead.cluster-status/v1"


class BadFileError(Exception):
    """A file has invalid content for its path; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths: `cluster` is the folder that driver and agent share, `home` the `FAIRLEAD_HOME` that holds it."""

    cluster: Path

    @property
    def home(self) -> Path:
        return self.cluster.parent

    @property
    def desired(self) -> Path:
        return self.cluster / "desired"

    @property
    def status(self) -> Path:
        return self.cluster / "status"

    @property
    def cluster_status(self) -> Path:
        return self.cluster / "status.json"

    @property
    def keys(self) -> Path:
        return self.cluster / "keys.json"

    @property
    def repositories(self) -> Path:
        return self.cluster / "repositories"

    @property
    def envoy(self) -> Path:
        return self.cluster / "envoy"

    @property
    def payloads(self) -> Path:
        return self.cluster / "payloads"

    @property
    def access_log(self) -> Path:
        return self.cluster / "access-log"

    @property
    def jobs(self) -> Path:
        return self.cluster / "jobs"

    @property
    def private(self) -> Path:
        return self.cluster / "private"

    @property
    def sockets(self) -> Path:
        return self.cluster / "sockets"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    def desired_file(self, namespace: str, service: str) -> Path:
        return self.desired / f"{namespace}.{service}.json"

    def secrets_file(self, namespace: str, service: str) -> Path:
        return self.cluster / "secrets" / f"{namespace}.{service}.json"

    def payloads_of(self, namespace: str, service: str) -> Path:
        return self.payloads / f"{namespace}.{service}"

    def status_file(self, namespace: str, service: str) -> Path:
        return self.status / f"{namespace}.{service}.json"


def key_of(path: Path) -> tuple[str, str]:
    """Return namespace and name of the service of a desired or a status file."""
    namespace, _, service = path.stem.partition(".")
    return namespace, service


@dataclass(frozen=True, slots=True)
class Order:
    """A desired file's content; `deleted` distinguishes a service to delete from one without revisions yet."""

    desired: Desired
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The agent's own status; `heartbeat_at` is Unix seconds and written at least every second."""

    heartbeat_at: float
    pid: int
    gateway_url: str
    components: tuple[Component, ...] = ()
    limits: tuple[Limit, ...] = ()


@contextmanager
def desired_files_locked(layout: Layout) -> Iterator[None]:
    """Lock the desired files: no other worker, nor the agent, compares, writes or removes one meanwhile.

    Raises:
        OSError: the cluster's folder cannot be written.
    """
    handle = os.open(layout.cluster / ".apply.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_json(path: Path, value: Mapping[str, Any], *, durable: bool = False) -> None:
    """Replace `path` by `value` atomically; `durable` also survives a power cut."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True), durable=durable)


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace `path` by `text` atomically; a reader sees the old or the new content whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_json(path: Path, schema: str) -> dict[str, Any]:
    """Return the object in `path`.

    Raises:
        FileNotFoundError: no such file.
        BadFileError: no JSON object of `schema`.
    """
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadFileError(f"{path.name} is not JSON: {error}") from error
    if not isinstance(value, dict) or value.get("schema") != schema:
        found = value.get("schema") if isinstance(value, dict) else type(value).__name__
        raise BadFileError(f"{path.name} holds {found!r} where {schema!r} was expected")
    return value


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
            tuple(map(str, value.get("exhausted", ()))),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"the keys cannot be read: {type(error).__name__}: {error}") from error


def _public_from_json(keys: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], ...]:
    return tuple({str(name): str(part) for name, part in each.items()} for each in keys)


def revision_to_json(revision: DesiredRevision) -> dict[str, Any]:
    value = {field.name: getattr(revision, field.name) for field in fields(revision)}
    own = {
        "patches": [],
        "model_config": dict(revision.model_config),
        "env": dict(revision.env),
        "secret_env": {name: asdict(each) for name, each in revision.secret_env.items()},
        "resources": asdict(revision.resources),
        "match": [asdict(each) for each in revision.match],
        "tap": None if revision.tap is None else asdict(revision.tap),
        "autoscaling": _autoscaling_to_json(revision.autoscaling),
        "logger": None if revision.logger is None else asdict(revision.logger),
    }
    return {**value, **own}


def revision_from_json(value: Mapping[str, Any]) -> DesiredRevision:
    own = {
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
    }
    return DesiredRevision(**{**_known(DesiredRevision, value), **own})


def secret_values(layout: Layout, namespace: str, service: str) -> dict[str, dict[str, str]]:
    """Return the values of a service's secrets by the names of secrets and their keys; empty without a file.

    Raises:
        BadFileError: the file cannot be read.
    """
    path = layout.secrets_file(namespace, service)
    try:
        found = read_json(path, SECRETS_SCHEMA)["values"]
        return {str(name): {str(key): str(value) for key, value in each.items()} for name, each in found.items()}
    except FileNotFoundError:
        return {}
    except (AttributeError, KeyError, OSError) as error:
        raise BadFileError(f"{path.name} cannot be read: {type(error).__name__}") from None


def secret_env_of(revision: DesiredRevision, values: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the variables of a revision whose values are in secrets; without those that are missing."""
    found = {name: values.get(each.name, {}).get(each.key) for name, each in revision.secret_env.items()}
    return {name: value for name, value in found.items() if value is not None}


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
