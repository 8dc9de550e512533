"""Cluster driver interface. Standard library only."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from integrations.clusters.base.callers import CallerKeys
from integrations.clusters.base.desired import Desired, Patch, PodTemplates
from integrations.clusters.base.drift import Drift
from integrations.clusters.base.exchanges import Candidate, Exchange
from integrations.clusters.base.gpu_nodes import DesiredNode, ObservedNode
from integrations.clusters.base.identity import JobIdentity, WorkloadIdentity
from integrations.clusters.base.jobs import Job, JobResult, Made, OnStage
from integrations.clusters.base.observed import Nodes, Observed, ObservedReplica


@dataclass(frozen=True, slots=True)
class Finding:
    """One requirement of services on a cluster.

    Attributes:
        about: what was checked, such as `API server` or `namespace vision`.
        message: what was found, in one sentence.
        remedy: what to do, now where it is not `ok`, else in time; empty for nothing.
    """

    about: str
    ok: bool
    message: str
    remedy: str = ""


ReadSecrets = Callable[[], Mapping[str, Mapping[str, str]]]


class ClusterDriver(Protocol):
    """All methods raise `common.errors.Unavailable` where the cluster cannot be reached."""

    def apply(self, desired: Desired) -> Sequence[Drift]:
        """Make the cluster work towards `desired`; returns when it is handed over, not when it is reached.

        Returns what was changed by hand since the last apply, which was put back or left, as `desired.drift` says.
        """

    def pod_templates(self, desired: Desired) -> Mapping[str, PodTemplates]:
        """Return the pod templates to pin, by revision, as they were applied last; changes nothing.

        Only of revisions without recorded ones of which all Deployments had a ready replica. Empty on a cluster without
        pods.
        """

    def template_changes(self, desired: Desired) -> Mapping[str, str]:
        """Return how the recorded pod templates differ from those of a new revision with the same content, as text.

        By revision; empty text where they do not. It asks the cluster nothing.
        """

    def apply_keys(self, keys: CallerKeys, namespaces: Collection[str]) -> None:
        """Make the cluster's gateway check callers by `keys`; returns when they are handed over.

        Args:
            namespaces: those with a service that not everybody may call.
        """

    def apply_secrets(self, namespace: str, service: str, read: ReadSecrets) -> None:
        """Pass values of secrets that a service's variables name; called before `apply`.

        Only for clusters that have no Secrets of their own.

        Args:
            read: returns the values by the names of secrets and their keys. Called while no other caller passes any:
                who is late finds out in it, raises, and passes nothing.
        """

    def preview(self, desired: Desired, patches: Sequence[Patch]) -> str:
        """Return the changes of `desired`'s patches to the rendered objects, as a unified diff; empty for none.

        Args:
            patches: those of which each has to change something.

        Raises:
            InvalidInput: a patch changes nothing, or the cluster rejects its result; by name.
        """

    def observe(self, namespace: str, service: str) -> Observed:
        """Return the service as it is; an unknown one has generation 0 and no revisions."""

    def touched(self, since: float) -> Collection[tuple[str, str]] | None:
        """Return namespace and name of services whose running state changed since a moment, in Unix seconds.

        It is cheap, and may name more. None where the cluster is watched by other means (`clusters.services.watch`).
        """

    def mark(self, namespace: str, service: str) -> object:
        """Return a value that changes with the service's objects on the cluster; None where none is known."""

    def metrics_page(self, namespace: str, replica: ObservedReplica) -> str:
        """Return the Prometheus page of a replica that has a `metrics_url`; bounded in time and size."""

    def log(self, namespace: str, service: str, replica: str) -> Sequence[str]:
        """Return the last log lines of a replica, without values of its environment; empty without a log.

        Raises:
            NotFound: the service has no such replica now.
        """

    def exchanges(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        """Return some of the exchanges that the service's taps recorded after `cursor`, and the cursor behind them.

        Exchanges before `cursor` are dropped: pass only a cursor that was stored together with the results of the
        exchanges before it; "" at first. The same cursor returns the same exchanges again, unless they were too many to
        be kept. A call returns about 16 MiB at most; an unchanged cursor means that there are no more for now. An
        exchange is returned within about two seconds of its recording, and dropped a minute after its tap ended.
        """

    def keep(self, workload: WorkloadIdentity, events: bytes) -> None:
        """Keep the events of a replica's tap, a JSON array of CloudEvents, until `exchanges` returns it.

        A repeated array is kept once. The kept size is bounded; the oldest goes. Raises `common.errors.Conflict` where
        its revision is not recorded now.
        """

    def inventory(self, *, with_nodes: bool = False) -> Nodes:
        """Return the cluster's components; `with_nodes` also each node's free capacity, which takes longer."""

    def observe_node(self, name: str) -> ObservedNode | None:
        """Return a node with GPUs as it is; None where no node has that name.

        Raises:
            Conflict: the cluster allows no repartitions.
        """

    def apply_node(self, desired: DesiredNode) -> Sequence[str]:
        """Make the cluster work towards `desired`; returns what blocks it now, such as a disruption budget.

        A node that is gone is ignored. Raises what `observe_node` raises.
        """

    def findings(self, namespaces: Sequence[str]) -> Sequence[Finding]:
        """Return whether services can run on the cluster and in these namespaces; an unreachable cluster is a finding.

        It takes as long as the cluster takes to answer, and changes nothing.
        """

    def check_namespace(self, namespace: str) -> None:
        """Raise Conflict, saying what to do, where services cannot run in the namespace."""

    def checks_callers(self, namespace: str) -> bool:
        """Return whether the gateway can check the callers of services of the namespace (`Desired.access`)."""

    def run(self, job: Job, on_stage: OnStage | None = None, made: Made | None = None) -> JobResult:
        """Run `job` to its end or its timeout, or until `on_stage` raises.

        A folder that it makes is passed to `made` where it ran on this machine. Elsewhere it is uploaded before the job
        ends, over the API, as `workloads/results/<result_id>`.
        """

    def replay(self, candidate: Candidate) -> AbstractContextManager[Callable[[Exchange], Exchange]]:
        """Start the candidate where models run, unreachable for clients, and end it when the block is left.

        The yielded function answers a recorded request once more. The candidate ends too when its caller is killed.
        Both raise `common.errors.InvalidInput` where the runtime cannot serve the candidate, and `Unavailable` where it
        ended or did not answer in time.
        """

    def check_config(self, fields: Mapping[str, object]) -> None:
        """Raise InvalidInput, naming the field, where the runtime takes no model with these ModelConfig fields."""

    def identify(self, token: str) -> WorkloadIdentity | JobIdentity | None:
        """Return the replica, or the pod of a job, to which a token was issued; None without one."""

    def check(self, desired: Desired) -> None:
        """Raise InvalidInput, naming the field, where the cluster cannot run what is desired; changes nothing."""

    def delete(self, namespace: str, service: str, generation: int) -> None:
        """Take the service off the cluster; deleting an unknown one is no error."""
