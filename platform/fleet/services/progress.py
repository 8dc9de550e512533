"""Progress of the open upgrade: reads what became of its rollouts, then starts the next services.

Each run holds the upgrade's row lock, so that of two workers one starts a service. A service's own lock is taken inside
of it, and never the other way round.
"""

from datetime import datetime

from django.db import transaction

from common.errors import FairleadError, NotFound
from deployments.domain.phases import Code
from deployments.domain.phases import Phase as RolloutPhase
from deployments.domain.service_state.desired import Role
from deployments.models import Revision
from deployments.selectors import outdated_query
from deployments.services import rollout_renew
from fleet.domain.waves import Member, Phase, State, is_complete, next_members, outcome_of
from fleet.models import FleetUpgrade, ServiceUpgrade
from fleet.services.upgrades import close, notify, target_of


@transaction.atomic
def upgrade_advance(*, now: datetime) -> FleetUpgrade | None:
    """Bring the open upgrade on, and return it; None without one."""
    upgrade = FleetUpgrade.objects.select_for_update().filter(is_open=True).first()
    if upgrade is None:
        return None
    before = upgrade.phase
    rows = {row.pk: row for row in _rows(upgrade)}
    for row in rows.values():
        if row.state == State.UPGRADING:
            _follow(upgrade, row, now)
    for member in next_members(_members(rows), upgrade.at_once) if upgrade.phase == Phase.RUNNING else ():
        if upgrade.phase == Phase.RUNNING:  # until one cannot be started
            _start(upgrade, rows[member], now)
    if is_complete(_members(rows)):
        failed = sum(row.state == State.FAILED for row in rows.values())
        close(upgrade, Phase.COMPLETE, f"{failed} of {len(rows)} services failed" if failed else "", now)
    if upgrade.phase != before:
        notify(upgrade, upgrade.message, now)
    return upgrade


def _rows(upgrade: FleetUpgrade) -> list[ServiceUpgrade]:
    return list(
        ServiceUpgrade.objects.filter(upgrade=upgrade).select_related("service", "rollout").order_by("wave", "pk")
    )


def _members(rows: dict[int, ServiceUpgrade]) -> list[Member]:
    return [Member(row.pk, row.wave, State(row.state)) for row in rows.values()]


def _follow(upgrade: FleetUpgrade, row: ServiceUpgrade, now: datetime) -> None:
    """Record the state of a service by that of its rollout; a failed one pauses the upgrade."""
    rollout = row.rollout
    if rollout is None:
        return _end(row, State.SKIPPED, "its rollout was deleted", now)
    state = outcome_of(RolloutPhase(rollout.phase), Code(rollout.reason_code))
    if not state.is_over:
        message = f"rollout {rollout.pk} is {rollout.phase}: {rollout.reason_message}"
        if message != row.message:
            row.message = message
            row.save(update_fields=["message"])
        return None
    message = "" if state is State.UPGRADED else f"rollout {rollout.pk} is {rollout.phase}: {rollout.reason_message}"
    _end(row, state, message, now)
    if state is State.FAILED:
        _pause(upgrade, row)
    return None


def _start(upgrade: FleetUpgrade, row: ServiceUpgrade, now: datetime) -> None:
    """Start the rollout of a service that still is behind; one that has a rollout of its own waits for its end."""
    service = row.service
    if service.deleting_at is not None or service.stopped:
        return _end(row, State.SKIPPED, f"it is {service.phase}", now)
    if not outdated_query().filter(service=service).exists():
        return _end(row, State.SKIPPED, "it has the present pod template already", now)
    going = Revision.objects.filter(service=service, role=Role.CANARY, stopped_at=None).first()
    if going is not None:
        message = f"waits for the end of the rollout to {going.name}"
        if message != row.message:
            row.message = message
            row.save(update_fields=["message"])
        return None
    by = f"upgrade {upgrade.pk} of the fleet"
    try:
        with transaction.atomic():
            row.rollout = rollout_renew(
                service_id=service.pk,
                actor=upgrade.created_by,
                now=now,
                by=by,
                detail={"upgrade": target_of(upgrade)},
            )
    except NotFound:
        return _end(row, State.SKIPPED, "it was deleted", now)
    except FairleadError as error:
        _end(row, State.FAILED, error.message, now)
        _pause(upgrade, row)
        return None
    row.state, row.message = State.UPGRADING, ""
    row.save(update_fields=["state", "message", "rollout"])
    return None


def _end(row: ServiceUpgrade, state: State, message: str, now: datetime) -> None:
    row.state, row.message, row.ended_at = state, message, now
    row.save(update_fields=["state", "message", "ended_at"])


def _pause(upgrade: FleetUpgrade, row: ServiceUpgrade) -> None:
    upgrade.phase = Phase.PAUSED
    upgrade.message = f"service {row.service} failed ({row.message}); resume to go on without it, or cancel"
    upgrade.save(update_fields=["phase", "message"])
