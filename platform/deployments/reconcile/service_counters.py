"""Prometheus counters by service, namespace and team: rollouts that ended, ticks that failed.

Each process shows its own counts: a worker the rollouts that its ticks ended, web those that people aborted.
"""

from functools import lru_cache, partial

from django.db import DatabaseError, transaction
from prometheus_client import Counter

from accounts.domain.roles import Owned
from accounts.selectors import owning_team
from deployments.domain.rollout.event_messages import ENDS
from deployments.models import InferenceService
from events.domain.kinds import Kind

_OF = ("namespace", "service", "team")
ROLLOUTS_ENDED = Counter("fairlead_rollouts_ended_total", "Attempts of rollouts that ended.", [*_OF, "phase"])
RECONCILE_FAILURES = Counter("fairlead_reconcile_failures_total", "Ticks that failed, by service.", [*_OF])
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
