"""Commands on upgrades of the fleet: start, pause, resume, cancel, with the webhook events of each.

They start no rollout; `progress` does, with the next run of its task.
"""

from datetime import datetime

from django.db import IntegrityError, transaction

from accounts.services import audit_record
from clusters.models import Cluster
from clusters.selectors import cluster_get
from common.errors import Conflict, InvalidInput, InvalidTransition, NotFound
from common.identifiers import check_dns_label
from events.domain.kinds import UpgradeKind
from events.services.delivery import Notice, deliveries_queue
from fleet.domain.waves import Phase, State, waves
from fleet.models import FleetUpgrade, ServiceUpgrade
from fleet.selectors.upgrades import outdated_services, upgrade_counts, upgrade_get

PERCENT, AT_ONCE = 25, 5
MAX_AT_ONCE = 100
_KINDS = {
    Phase.RUNNING: UpgradeKind.RESUMED,
    Phase.PAUSED: UpgradeKind.PAUSED,
    Phase.COMPLETE: UpgradeKind.COMPLETE,
    Phase.CANCELLED: UpgradeKind.CANCELLED,
}
"""The event of each phase that an upgrade comes to after its start."""


def upgrade_start(
    *, cluster: str, namespace: str, percent: int, at_once: int, actor: str, now: datetime
) -> FleetUpgrade:
    """Start an upgrade of the services that are behind.

    Args:
        cluster, namespace: only services there; empty for all.
        percent: share of the services in each wave after the first, 1 to 100.
        at_once: the most that are upgraded at the same time, 1 to 100.

    Raises:
        InvalidInput: a number or name is out of its range.
        NotFound: no such cluster.
        Conflict: nothing is behind, or another upgrade is open.
    """
    _check_range("percent", percent, 100)
    _check_range("at_once", at_once, MAX_AT_ONCE)
    if namespace:
        check_dns_label(namespace, field="namespace")
    place = cluster_get(name=cluster) if cluster else None
    behind = list(
        outdated_services(cluster=cluster, namespace=namespace).order_by("service__namespace", "service__name")
    )
    if not behind:
        raise Conflict(
            f"no service{_where(place, namespace)} is behind, so there is nothing to upgrade; what the present release "
            "and cluster file would change is found within a few minutes"
        )
    try:
        with transaction.atomic():
            row = FleetUpgrade.objects.create(
                cluster=place,
                namespace=namespace,
                percent=percent,
                at_once=at_once,
                created_at=now,
                created_by=actor,
            )
            ServiceUpgrade.objects.bulk_create(
                ServiceUpgrade(upgrade=row, service=each.service, wave=wave, changes=each.template_changes)
                for each, wave in zip(behind, waves(len(behind), percent), strict=True)
            )
            after = {"cluster": cluster, "namespace": namespace, "percent": percent, "at_once": at_once}
            audit_record(
                actor=actor,
                action="upgrade.start",
                target=target_of(row),
                now=now,
                after={**after, "services": len(behind)},
            )
            said = f"{actor} started it; services{_where(place, namespace)}: {len(behind)}"
            notify(row, said, now, kind=UpgradeKind.STARTED)
    except IntegrityError:
        going = FleetUpgrade.objects.filter(is_open=True).first()
        if going is None:
            raise
        raise Conflict(
            f"upgrade {going.pk} of the fleet is {going.phase} already; wait for its end, or cancel it first"
        ) from None
    return row


def upgrade_pause(*, upgrade_id: int, actor: str, now: datetime) -> FleetUpgrade:
    """Pause: no further service starts; rollouts in progress go on. Raises InvalidTransition unless it is running."""
    return _move(upgrade_id, "pause", (Phase.RUNNING,), Phase.PAUSED, f"{actor} paused it", actor, now)


def upgrade_resume(*, upgrade_id: int, actor: str, now: datetime) -> FleetUpgrade:
    """Resume, without the services that failed. Raises InvalidTransition unless it is paused."""
    return _move(upgrade_id, "resume", (Phase.PAUSED,), Phase.RUNNING, f"{actor} resumed it", actor, now)


def upgrade_cancel(*, upgrade_id: int, actor: str, now: datetime) -> FleetUpgrade:
    """Cancel: services that wait are skipped; rollouts in progress go on. Raises InvalidTransition where it is over."""
    said = f"{actor} cancelled it"
    return _move(upgrade_id, "cancel", (Phase.RUNNING, Phase.PAUSED), Phase.CANCELLED, said, actor, now)


def close(row: FleetUpgrade, phase: Phase, message: str, now: datetime) -> None:
    """Write that an upgrade, held by its lock, is over; services that wait are skipped."""
    row.phase, row.message, row.is_open, row.ended_at = phase, message, None, now
    row.save(update_fields=["phase", "message", "is_open", "ended_at"])
    waiting = ServiceUpgrade.objects.filter(upgrade=row, state=State.WAITING)
    waiting.update(state=State.SKIPPED, message="the upgrade ended before", ended_at=now)


def notify(row: FleetUpgrade, message: str, now: datetime, *, kind: UpgradeKind | None = None) -> None:
    """Queue a webhook event of the phase that an upgrade has come to, in the transaction that writes the phase.

    Webhooks of the installation get it, those of teams do not: an upgrade is of services of all teams.

    Args:
        kind: None for that of the phase.
    """
    counts = upgrade_counts(upgrade=upgrade_get(upgrade_id=row.pk))
    services = {state.value: count for state, count in counts.items()}
    said = f"upgrade {row.pk} of the fleet is {row.phase}" + (f": {message}" if message else "")
    about = {"upgrade": row.pk, "phase": row.phase, "services": services}
    deliveries_queue([Notice(kind or _KINDS[Phase(row.phase)], now, said, about)])


def target_of(row: FleetUpgrade) -> str:
    """Return an upgrade's path in the API."""
    return f"fleet/upgrades/{row.pk}"


@transaction.atomic
def _move(  # noqa: PLR0917
    upgrade_id: int, verb: str, of: tuple[Phase, ...], to: Phase, said: str, actor: str, now: datetime
) -> FleetUpgrade:
    row = FleetUpgrade.objects.select_for_update().filter(pk=upgrade_id).first()
    if row is None:
        raise NotFound(f"there is no upgrade {upgrade_id} of the fleet")
    if Phase(row.phase) not in of:
        needed = " or ".join(of)
        raise InvalidTransition(f"upgrade {upgrade_id} of the fleet is {row.phase}; {verb} needs one that is {needed}")
    before = row.phase
    if to.is_over:
        close(row, to, said, now)
    else:
        row.phase, row.message = to, "" if to is Phase.RUNNING else said
        row.save(update_fields=["phase", "message"])
    audit_record(
        actor=actor,
        action=f"upgrade.{verb}",
        target=target_of(row),
        now=now,
        before={"phase": before},
        after={"phase": row.phase},
    )
    notify(row, said, now)
    return row


def _check_range(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInput(f"{name} is {value}; expected 1 to {most}", field=name)


def _where(cluster: Cluster | None, namespace: str) -> str:
    of_cluster = f" of cluster {cluster.name}" if cluster is not None else ""
    return f"{of_cluster} in namespace {namespace}" if namespace else of_cluster
