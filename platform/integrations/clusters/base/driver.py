"""The verbs of a cluster driver. Standard library only."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from integrations.clusters.base.desired import Desired
from integrations.clusters.base.drift import Drift
from integrations.clusters.base.exchanges import Candidate, Exchange
from integrations.clusters.base.findings import Finding
from integrations.clusters.base.gpu_nodes import DesiredNode, ObservedNode
from integrations.clusters.base.identity import JobIdentity, WorkloadIdentity
from integrations.clusters.base.jobs import Job, JobResult, Made, Told
from integrations.clusters.base.observed import Nodes, Observed, ObservedReplica
from integrations.clusters.base.patches import Patch


class ClusterDriver(Protocol):
    """The verbs. All raise `common.errors.Unavailable` where the cluster cannot be reached."""

    def apply(self, desired: Desired) -> Sequence[Drift]:
        """Make the cluster work towards `desired`; returns when it is handed over, not when it is so.

        What it returns was changed by hand since it was applied, and was put back or left, as `desired.drift` says.
        """

    def preview(self, desired: Desired, patches: Sequence[Patch]) -> str:
        """Return what the patches of `desired` change of what is rendered, as a unified diff; empty for nothing.

        Args:
            patches: those of which each has to change something.

        Raises:
            InvalidInput: a patch changes nothing, or what it makes is not taken by the cluster; by name.
        """

    def observe(self, namespace: str, service: str) -> Observed:
        """Return the service as it is; an unknown one has generation 0 and no revisions."""

    def touched(self, since: float) -> Collection[tuple[str, str]] | None:
        """Return namespace and name of the services of which something runs otherwise since a moment, in Unix seconds.

        It costs little, and may name more. None where somebody else watches the cluster (`clusters.services.watch`).
        """

    def metrics_page(self, namespace: str, replica: ObservedReplica) -> str:
        """Return the Prometheus page of a replica that has a `metrics_url`; bounded in time and size."""

    def log(self, namespace: str, service: str, replica: str) -> Sequence[str]:
        """Return the last lines of what a replica says, without what its environment holds; none where it says nothing.

        Raises:
            NotFound: the service has no such replica now.
        """

    def exchanges(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        """Return some of what the service's taps recorded after `cursor`, and the cursor behind them.

        What lies before `cursor` is dropped: pass only what was kept together with what was made of the exchanges
        before it; "" at first. The same cursor again returns the same exchanges, unless they were too many to be
        kept. A call returns about 16 MiB at most; an unchanged cursor says that there is nothing more for now. What
        a tap recorded comes within about two seconds, and a minute after the tap is gone it is dropped.
        """

    def keep(self, workload: WorkloadIdentity, events: bytes) -> None:
        """Keep what a replica's tap brings, a JSON array of CloudEvents, until `exchanges` returns it.

        The same again is kept once. What is kept is bounded; the oldest goes. Raises `common.errors.Conflict` where
        nothing of its revision is recorded now.
        """

    def inventory(self, *, with_nodes: bool = False) -> Nodes:
        """Return what the cluster is made of; `with_nodes` also what is left of each node, which takes longer."""

    def observe_node(self, name: str) -> ObservedNode | None:
        """Return a node with GPUs as it is; None where there is none of that name.

        Raises:
            Conflict: the cluster has no nodes that may be cut anew.
        """

    def apply_node(self, desired: DesiredNode) -> Sequence[str]:
        """Make the cluster work towards `desired`; returns what is in the way now, such as a disruption budget.

        A node that is gone is left at that. Raises what `observe_node` raises.
        """

    def findings(self, namespaces: Sequence[str]) -> Sequence[Finding]:
        """Return whether services can run on the cluster and in these namespaces; a cluster that is away is a finding.

        It takes as long as the cluster takes to answer, and changes nothing.
        """

    def check_namespace(self, namespace: str) -> None:
        """Raise Conflict, saying what to do, where services cannot run in the namespace."""

    def run(self, job: Job, told: Told | None = None, made: Made | None = None) -> JobResult:
        """Run `job` to its end or its timeout, or until `told` raises.

        A folder that it makes goes to `made` where it ran on this machine. From elsewhere it has come before the job
        ends, over the API, as `workloads/results/<result_id>`.
        """

    def replay(self, candidate: Candidate) -> AbstractContextManager[Callable[[Exchange], Exchange]]:
        """Start the candidate where models run, out of reach of every client, and end it when the block is left.

        What the block is given answers a recorded request once more. It ends too when its caller is killed. Both raise
        `common.errors.InvalidInput` where the runtime cannot serve the candidate, and `Unavailable` where it ended or
        did not answer in time.
        """

    def check_config(self, fields: Mapping[str, object]) -> None:
        """Raise InvalidInput, naming the field, where the runtime takes no model with these ModelConfig fields."""

    def identify(self, token: str) -> WorkloadIdentity | JobIdentity | None:
        """Return the replica, or the pod of a job, that a token was given to; None where it was given to none."""

    def check(self, desired: Desired) -> None:
        """Raise InvalidInput, naming the field, where the cluster could not do what is desired; changes nothing."""

    def delete(self, namespace: str, service: str, generation: int) -> None:
        """Take the service off the cluster; deleting an unknown one is no error."""
