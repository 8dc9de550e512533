"""Files between driver and agent. Each file is replaced by one rename, never edited; `documents` has what is in them.

cluster/keys.json                            driver -> agent: `CallerKeys`; without it, no key is valid
cluster/desired/<namespace>.<service>.json   driver -> agent: `Desired`; `deleted` marks a service that shall go
cluster/secrets/<namespace>.<service>.json   driver -> agent: values of secrets that the service uses; mode 0600
cluster/status/<namespace>.<service>.json    agent -> driver: `Observed`
cluster/status.json                          agent -> driver: heartbeat and `Component`s
cluster/private/<namespace>.<replica>/        a replica's own folder: temporary files, and the runtime's port file
cluster/sockets/<digest of its name>/        what a replica listens on, unless this path is too long (`agent.sockets`)
cluster/pools/<namespace>.<pool>/             agent -> a pool's fetcher: its catalog; and what that has fetched
cluster/access-log/                          Envoy -> worker: a line for each request (`access_log_files`)
cluster/payloads/                            agent and replicas -> driver: what taps recorded (`payloads`)
cluster/feedback/                            agent -> worker: labels that the gateway took (`feedback_spool`)
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integrations.clusters.base import (
    Component,
    Desired,
    DesiredCompanion,
    DesiredRevision,
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
    def feedback(self) -> Path:
        return self.cluster / "feedback"

    @property
    def jobs(self) -> Path:
        return self.cluster / "jobs"

    @property
    def pools(self) -> Path:
        return self.cluster / "pools"

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
    with _locked(layout.cluster / ".apply.lock"):
        yield


@contextmanager
def secrets_files_locked(layout: Layout) -> Iterator[None]:
    """Lock the files with values of secrets: no other worker writes or removes one meanwhile; the agent only reads.

    Raises:
        OSError: the cluster's folder cannot be written.
    """
    with _locked(layout.cluster / ".secrets.lock"):
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
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


def secret_env_of(its: DesiredRevision | DesiredCompanion, values: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the variables of a revision or companion whose values are in secrets; without those that are missing."""
    found = {name: values.get(each.name, {}).get(each.key) for name, each in its.secret_env.items()}
    return {name: value for name, value in found.items() if value is not None}
