"""Local cluster driver of the embedded mode: writes desired state as files for the agent and reads its status files.

It starts nothing but jobs; a worker that dies takes no model with it.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from common.disk_full import is_no_room, refused
from common.errors import Conflict, InvalidInput, NotFound, Unavailable
from integrations.clusters import payloads
from integrations.clusters.base import (
    CallerKeys,
    Candidate,
    Checker,
    Component,
    Desired,
    DesiredNode,
    DesiredRevision,
    Drift,
    Exchange,
    Finding,
    Job,
    JobResult,
    Made,
    Nodes,
    Observed,
    ObservedNode,
    ObservedReplica,
    ObservedRevision,
    OnStage,
    Patch,
    PodTemplates,
    ReadSecrets,
    ReplicaPhase,
    WorkloadIdentity,
)
from integrations.clusters.base.failures import MAX_LOG_BYTES, last_lines
from integrations.clusters.local.documents import (
    cluster_status_from_json,
    keys_from_json,
    keys_to_json,
    observed_from_json,
    order_from_json,
    order_to_json,
)
from integrations.clusters.local.files import (
    DESIRED_SCHEMA,
    KEYS_SCHEMA,
    OBSERVED_SCHEMA,
    SECRETS_SCHEMA,
    STATUS_SCHEMA,
    BadFileError,
    ClusterStatus,
    Layout,
    Order,
    desired_files_locked,
    key_of,
    read_json,
    secret_env_of,
    secret_values,
    secrets_files_locked,
    write_json,
)
from integrations.clusters.local.jobs import jobs, replays
from integrations.clusters.local.jobs.checker import checker
from integrations.clusters.local.jobs.config_check import check_config
from integrations.clusters.local.pid_files import is_alive, read_record
from integrations.clusters.local.state_files import DISK
from integrations.machine.limits import Level, Limit
from integrations.metrics import pages

STALE_AFTER_S = 10.0
_GATEWAY = "gateway"
_STARTED_BY_THE_COMMAND_LINE = ("web", "worker", "watcher", "agent", "holder")


class LocalDriver:
    """Driver of the cluster whose files are under `folder`; implements `ClusterDriver`."""

    def __init__(self, folder: Path, *, allow_python_models: bool = False) -> None:
        self._layout = Layout(folder.absolute())
        self._allow_python_models = allow_python_models

    def apply(self, desired: Desired) -> Sequence[Drift]:
        """Pass `desired` to the agent; a generation lower than the present one is ignored, the same not rewritten."""
        for revision in desired.revisions:
            if revision.custom is not None and not revision.custom.working_dir:
                raise InvalidInput(
                    f"{revision.name}: this machine's cluster runs no image as custom predictor", field="custom"
                )
            for kind, its in revision.companions.items():
                if not its.working_dir:
                    raise InvalidInput(f"{revision.name}: this machine's cluster runs no image as {kind}", field=kind)
            if revision.pool and (what := _what_a_pool_cannot_serve(revision)):
                why = f"is in pool {revision.pool}, whose replicas cannot serve {what}; leave the pool out"
                raise InvalidInput(f"{revision.name} {why}", field="pool")
        is_newest = self._order(Order(desired))
        if is_newest and not any(revision.secret_refs for revision in desired.revisions):
            self._forget_secrets(desired.namespace, desired.service)
        return ()  # only the agent changes what runs

    def pod_templates(self, desired: Desired) -> Mapping[str, PodTemplates]:  # noqa: ARG002
        """Return nothing: replicas on this machine are processes of the installed release."""
        return {}

    def template_changes(self, desired: Desired) -> Mapping[str, str]:  # noqa: ARG002
        """Return nothing, as `pod_templates` does."""
        return {}

    def apply_secrets(self, namespace: str, service: str, read: ReadSecrets) -> None:
        """Pass values of secrets to the agent, in a file for its owner alone; the same are not rewritten.

        Replicas get them when their processes start.
        """
        place = self._layout.secrets_file(namespace, service)
        # Not the lock of the desired files, for which the agent would wait: `read` may wait for the database.
        with self._writing(place, secrets_files_locked):
            values = read()
            place.parent.mkdir(mode=0o700, exist_ok=True)
            with suppress(BadFileError):
                if secret_values(self._layout, namespace, service) == values:
                    return
            write_json(place, {"schema": SECRETS_SCHEMA, "values": values}, durable=True)

    def apply_keys(self, keys: CallerKeys, namespaces: Collection[str] = ()) -> None:  # noqa: ARG002
        """Pass the callers' keys to the agent; the same are not rewritten."""
        with self._writing(self._layout.keys):
            try:
                if keys_from_json(read_json(self._layout.keys, KEYS_SCHEMA)) == keys:
                    return
            except (FileNotFoundError, BadFileError):
                pass
            write_json(self._layout.keys, keys_to_json(keys), durable=True)

    def preview(self, desired: Desired, patches: Sequence[Patch]) -> str:  # noqa: ARG002
        """Return nothing: patches are refused for services on this machine."""
        return ""

    def delete(self, namespace: str, service: str, generation: int) -> None:
        """Order the agent to delete the service; it forgets the service when its last process has ended."""
        is_newest = True
        if (
            self._layout.desired_file(namespace, service).exists()
            or self._layout.status_file(namespace, service).exists()
        ):
            is_newest = self._order(Order(Desired(namespace, service, generation, ()), deleted=True))
        if is_newest:
            self._forget_secrets(namespace, service)

    def observe(self, namespace: str, service: str) -> Observed:
        """Return the service as the agent reports it; raises Unavailable without a recent heartbeat of the agent."""
        self._cluster_status()
        found = self._status(namespace, service)
        if not any(revision.pool for revision in found.revisions):
            return found
        pools = {each.pool: self._status(*each.pool.split("/")) for each in found.revisions if each.pool}
        revisions = (_with_replicas(each, pools[each.pool]) if each.pool else each for each in found.revisions)
        return replace(found, revisions=tuple(revisions))

    def _status(self, namespace: str, service: str) -> Observed:
        try:
            return observed_from_json(read_json(self._layout.status_file(namespace, service), OBSERVED_SCHEMA))
        except FileNotFoundError:
            return Observed(namespace, service)
        except BadFileError as error:
            raise Unavailable(f"the local agent's status of {namespace}/{service} cannot be read: {error}") from error

    def touched(self, since: float) -> Collection[tuple[str, str]] | None:
        """Return the services whose status the agent has written since: it writes changes only."""
        try:
            with os.scandir(self._layout.status) as files:
                return [key_of(Path(file.name)) for file in files if file.stat().st_mtime >= since]
        except OSError:
            return None  # none exists yet, or one was just removed

    def mark(self, namespace: str, service: str) -> None:
        """Return None: the agent reports the changes of services (`touched`)."""

    def metrics_page(self, namespace: str, replica: ObservedReplica) -> str:  # noqa: ARG002
        """Return the page of a replica of this machine."""
        return pages.read(replica.metrics_url)

    def log(self, namespace: str, service: str, replica: str) -> Sequence[str]:
        """Return the last log lines of a replica's process."""
        if all(replica != each.name for one in self.observe(namespace, service).revisions for each in one.own_replicas):
            raise NotFound(f"service {namespace}/{service} has no replica {replica[:100]!r} now")
        try:
            order = order_from_json(read_json(self._layout.desired_file(namespace, service), DESIRED_SCHEMA))
            secrets = secret_values(self._layout, namespace, service)
            with (self._layout.logs / f"{namespace}.{replica}.log").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_LOG_BYTES))
                said = file.read().decode(errors="replace")
        except FileNotFoundError:
            return ()
        except (OSError, BadFileError) as error:
            raise Unavailable(f"what replica {replica} said cannot be read: {error}") from error
        env: dict[str, str] = {}
        for revision in order.desired.revisions:
            env |= {**revision.env, **secret_env_of(revision, secrets)}
            for kind, its in revision.companions.items():
                own = {**its.env, **secret_env_of(its, secrets)}
                env |= {f"{kind}.{name}": value for name, value in own.items()}
        return last_lines(said, env)

    def exchanges(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        """Return the exchanges that the taps of the service's replicas recorded after `cursor`."""
        try:
            return payloads.take(self._layout.payloads_of(namespace, service), cursor)
        except OSError as error:
            raise Unavailable(f"what was recorded of {namespace}/{service} cannot be read: {error}") from error

    def inventory(self, *, with_nodes: bool = False) -> Nodes:  # noqa: ARG002 - there is one machine
        """Return the gateway and the processes of the embedded mode; raises Unavailable like `observe`."""
        status = self._cluster_status()
        components = (*status.components, *self._started_by_the_command_line())
        unknown = "the local cluster is this machine, whose processes share all of it"
        return Nodes(components, unknown=unknown, limits=status.limits)

    def observe_node(self, name: str) -> ObservedNode | None:
        """Refuse: this machine has no repartitions."""
        raise Conflict(f"{name} cannot be worked on: the local cluster is this machine, and has no nodes")

    def apply_node(self, desired: DesiredNode) -> Sequence[str]:
        """Refuse, as `observe_node` does."""
        raise Conflict(f"{desired.name} cannot be worked on: the local cluster is this machine, and has no nodes")

    def findings(self, namespaces: Sequence[str]) -> Sequence[Finding]:  # noqa: ARG002 - here any namespace will do
        """Return whether the platform's own parts run."""
        try:
            seen = self.inventory()
        except Unavailable as error:
            return [Finding("agent", False, error.message, "start the platform with `fairlead up`")]
        return [*map(_part, seen.components), *map(_finding, seen.limits)]

    def check_namespace(self, namespace: str) -> None:
        """Accept any namespace: here it is only a name."""

    def checks_callers(self, namespace: str) -> bool:  # noqa: ARG002
        """Return True: the platform's own gateway checks them."""
        return True

    def run(self, job: Job, on_stage: OnStage | None = None, made: Made | None = None) -> JobResult:
        """Run the job as its own process, bounded in time and memory."""
        return jobs.run(
            job, self._layout.jobs, allow_python_models=self._allow_python_models, on_stage=on_stage, made=made
        )

    def checker(self, timeout_s: float) -> AbstractContextManager[Checker | None]:
        """Start a process that checks many models; None where they need GPUs, or the kernel cannot part them."""
        return checker(self._layout.jobs, timeout_s)

    def replay(self, candidate: Candidate) -> AbstractContextManager[Callable[[Exchange], Exchange]]:
        """Run the candidate as its own process that only the caller can reach."""
        return replays.replay(candidate, self._layout.jobs, allow_python_models=self._allow_python_models)

    def check(self, desired: Desired) -> None:
        """Refuse nothing: a local cluster can run any desired state."""

    def check_config(self, fields: Mapping[str, object]) -> None:
        """Check with the serving runtime, in its own process that loads no model."""
        check_config(fields)

    def keep(self, workload: WorkloadIdentity, events: bytes) -> None:  # noqa: ARG002
        """Refuse: replicas on this machine write into files."""
        raise Conflict(f"{workload.pod} brings recorded requests, but those of this machine's replicas are files")

    def identify(self, token: str) -> WorkloadIdentity | None:  # noqa: ARG002
        """Return None: replicas on this machine are given no tokens."""
        return None

    def _forget_secrets(self, namespace: str, service: str) -> None:
        place = self._layout.secrets_file(namespace, service)
        if not place.exists():
            return  # as for most services at every tick: no reason to wait for others' values
        with self._writing(place, secrets_files_locked):
            place.unlink(missing_ok=True)

    def _order(self, order: Order) -> bool:
        """Write the order, unless it is there already; return whether no newer one is."""
        desired = order.desired
        for word in (desired.namespace, desired.service, *(revision.name for revision in desired.revisions)):
            if not word or set(word) - set("abcdefghijklmnopqrstuvwxyz0123456789-"):
                raise InvalidInput(f"{word!r} cannot be part of a file name or route; it must be a DNS label")
        place = self._layout.desired_file(desired.namespace, desired.service)
        with self._writing(place):
            stored = _order_in(place)
            if stored is None or (stored != order and stored.desired.generation <= desired.generation):
                write_json(place, order_to_json(order), durable=True)
            return stored is None or stored.desired.generation <= desired.generation

    @contextmanager
    def _writing(
        self, place: Path, locked: Callable[[Layout], AbstractContextManager[None]] = desired_files_locked
    ) -> Iterator[None]:
        """Lock the driver's files to write `place`; raises NoRoom on a full disk, else Unavailable where it fails."""
        try:
            self._layout.desired.mkdir(parents=True, exist_ok=True)
            with locked(self._layout):
                yield
        except OSError as error:
            if is_no_room(error):
                raise refused(place, self._layout.home) from error
            raise Unavailable(f"the cluster folder {self._layout.cluster} cannot be written: {error}") from error

    def _cluster_status(self) -> ClusterStatus:
        start = "start it with `fairlead up`"
        try:
            status = cluster_status_from_json(read_json(self._layout.cluster_status, STATUS_SCHEMA))
        except FileNotFoundError:
            raise Unavailable(f"the local agent has not run in {self._layout.home}; {start}") from None
        except BadFileError as error:
            raise Unavailable(f"the local agent's status cannot be read: {error}") from error
        silent_s = time.time() - status.heartbeat_at
        if silent_s > STALE_AFTER_S:
            raise Unavailable(f"the local agent has not been heard of for {silent_s:.0f} s; {start}")
        return status

    def _started_by_the_command_line(self) -> Iterator[Component]:
        for name in _STARTED_BY_THE_COMMAND_LINE:
            record = read_record(self._layout.run / f"{name}.json")
            if record is not None:
                yield Component(name, ready=is_alive(record), restarts=record.restarts, message=record.message)


def _part(part: Component) -> Finding:
    # A gateway that serves has a message only for a fault, as of its certificate.
    ok = part.ready and not (part.name == _GATEWAY and part.message)
    return Finding(part.name, ok, part.message or f"{part.name} runs", "" if ok else _remedy(part.name))


def _remedy(part: str) -> str:
    return "make room on that disk" if part == DISK else "see the logs of `fairlead up`, in `logs/` of its home"


def _finding(limit: Limit) -> Finding:
    has = f"{limit.whose} uses {limit.amount(limit.used)} of {limit.amount(limit.most)}"
    if limit.level is Level.UNKNOWN:
        return Finding(limit.name, True, "it cannot be read here")
    if limit.level is Level.FINE:
        return Finding(limit.name, True, has)
    return Finding(limit.name, limit.level is not Level.AT_LIMIT, f"{has}; at the limit {limit.breaks}", limit.remedy)


def _order_in(place: Path) -> Order | None:
    """Return the present order; None where it is absent or cannot be read, so that it gets replaced."""
    try:
        return order_from_json(read_json(place, DESIRED_SCHEMA))
    except (FileNotFoundError, BadFileError):
        return None


def _with_replicas(revision: ObservedRevision, pool: Observed) -> ObservedRevision:
    """Return a revision that a pool answers for with the pool's replicas, without what is of the pool alone."""
    if not revision.ready_replicas:
        return revision
    number = revision.replicas[0].restart_number
    serving = (each for running in pool.revisions for each in running.replicas if each.phase is ReplicaPhase.READY)
    replicas = tuple(replace(each, restarts=0, failure=None, restart_number=number) for each in serving)
    return replace(revision, replicas=replicas or revision.replicas)


def _what_a_pool_cannot_serve(revision: DesiredRevision) -> str:
    """Return what of a revision needs replicas of its own; empty for nothing."""
    needs = {
        "programs": bool(revision.programs),
        "variables": bool(revision.env or revision.secret_env),
        "a GPU": bool(revision.resources.accelerator),
        "a limit of concurrent requests": bool(revision.max_concurrent_requests),
        "a payload logger": revision.logger is not None,
    }
    return next((what for what, it_does in needs.items() if it_does), "")
