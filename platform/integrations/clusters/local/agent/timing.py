"""Timeouts, intervals and back-off of the agent. In one place, so that tests can shorten them."""

from dataclasses import dataclass

from integrations.clusters.local.envoy.wake import HELD_S


@dataclass(frozen=True, slots=True)
class Timing:
    """All in seconds except `probe_failures`.

    Attributes:
        desired_s: polling interval of the folder of desired files. poll_s: from one round to the next while something
        moves. round_s: while nothing does. start_s: how long a runtime may take to load its model.
        probe_s: between two probes of a replica that serves, and of Envoy.
        settled_probe_s: the same, for a replica that has served for `backoff_reset_s`: probes are its main cost then.
        probe_timeout_s: after which one probe has failed; generous, since a busy machine is no dead one.
        probe_failures: consecutive failures that make a replica unresponsive: it is killed and restarted.
        backoff_first_s: before the first restart; doubles with every further one. backoff_most_s: the longest.
        backoff_reset_s: how long a process must have served for its next end to count as the first.
        settle_s: for how long nothing must be in flight before a leaving replica has to stop: Envoy's workers
            apply a change a moment after its admin page shows it.
        drain_s: how long requests in flight may take before their replica is stopped.
        exit_s: how long a program may take to end after SIGTERM before it is killed.
        memory_s: between two looks at the memory of replicas.
        limits_s: between two looks at the limits of this machine.
        rows_s: between two looks at the gateway's access log, while there is a limit of rows a minute.
        certificates_s: between two looks at the files of the gateway's certificate.
        gateway_s: how long Envoy may take to acknowledge a change.
        held_s: how long requests wait in the gateway for a service that is asleep.
        gateway_silent_s: after which an Envoy that answers nothing is killed. Long: all services lose their requests
            with it, and one that is merely slow loses none.
    """

    desired_s: float = 0.02
    poll_s: float = 0.1
    round_s: float = 1.0
    start_s: float = 180.0
    probe_s: float = 1.0
    settled_probe_s: float = 3.0
    probe_timeout_s: float = 3.0
    probe_failures: int = 4
    backoff_first_s: float = 0.25
    backoff_most_s: float = 30.0
    backoff_reset_s: float = 60.0
    settle_s: float = 0.2
    drain_s: float = 30.0
    exit_s: float = 15.0
    memory_s: float = 1.0
    limits_s: float = 20.0
    rows_s: float = 0.5
    certificates_s: float = 1.0
    gateway_s: float = 5.0
    held_s: float = HELD_S
    gateway_silent_s: float = 30.0

    def backoff_s(self, failures: int) -> float:
        """Return how long to wait after the `failures`th failure in a row, counted from 1."""
        return min(self.backoff_most_s, self.backoff_first_s * 2.0 ** min(failures - 1, 30))
