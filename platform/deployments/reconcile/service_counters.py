"""Prometheus counters by service, namespace and team: rollouts that ended, ticks that failed.

Each process shows its own counts: a worker the rollouts that its ticks ended, web those that people aborted.
"""

from datetime import datetime
from functools import lru_cache, partial

from django.db import DatabaseError, transaction
from prometheus_client import Counter, Histogram

from accounts.domain.roles import Owned
from accounts.selectors import owning_team
from deployments.domain.phases import Code, Phase
from deployments.domain.rollout.event_messages import ENDS
from deployments.models import InferenceService
from events.domain.kinds import Kind

_OF = ("namespace", "service", "team")
ROLLOUTS_ENDED = Counter("fairlead_rollouts_ended_total", "Attempts of rollouts that ended.", [*_OF, "phase"])
RECONCILE_FAILURES = Counter("fairlead_reconcile_failures_total", "Ticks that failed, by service.", [*_OF])
ROLLOUT_ENDS = Counter(
    "fairlead_rollout_ends_total",
    "Attempts of rollouts that ended, by the reason of all services.",
    ["phase", "reason"],
)
TURN_INTERVAL = Histogram(
    "fairlead_rollout_turn_interval_seconds",
    "Time from one turn of a service in rollout to the next.",
    buckets=(1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0),
)
_PHASES = {kind: phase for phase, kind in ENDS.items()}


@lru_cache(maxsize=10_000)
def expect_end(rollout_id: int, namespace: str, name: str) -> None:  # noqa: ARG001 - once for each
    """Create the counters of a rollout in progress before it ends: `increase()` does not see a series' first value.

    Each tick calls it, and the cache limits it to once per rollout.
    """
    of = _labels(namespace, name)
    for phase in ENDS:
        ROLLOUTS_ENDED.labels(*of, phase)


def count_ends(service: InferenceService, kinds: list[Kind]) -> None:
    """Count the rollouts that these events end, once the transaction is committed."""
    ended = [_PHASES[kind] for kind in kinds if kind in _PHASES]
    if not ended:
        return
    of = _labels(service.namespace, service.name)
    for phase in ended:
        transaction.on_commit(partial(ROLLOUTS_ENDED.labels(*of, phase).inc))


def count_reason(phase: Phase, code: Code) -> None:
    """Count a rollout that ends for this reason, once the transaction is committed."""
    transaction.on_commit(partial(ROLLOUT_ENDS.labels(phase, code).inc))


def note_turn(service: InferenceService, now: datetime) -> None:
    """Observe how long a service in rollout waited for this turn, once the transaction is committed."""
    if service.ticked_at is not None:
        transaction.on_commit(partial(TURN_INTERVAL.observe, max(0.0, (now - service.ticked_at).total_seconds())))


def count_failure(service_id: int) -> None:
    """Count a failed tick; none where the service is gone or the database is away, which has a metric of its own."""
    try:
        found = InferenceService.objects.values_list("namespace", "name").filter(pk=service_id).first()
        if found is not None:
            RECONCILE_FAILURES.labels(*_labels(*found)).inc()
    except DatabaseError:
        return


def _labels(namespace: str, name: str) -> tuple[str, str, str]:
    return namespace, name, owning_team(kind=Owned.NAMESPACE, name=namespace)
