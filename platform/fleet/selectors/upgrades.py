"""Queries of services that are behind, and of upgrades."""

from collections.abc import Mapping

from django.db.models import Count, Q, QuerySet

from common.errors import NotFound
from deployments.models import Revision
from deployments.selectors import outdated_query
from fleet.domain.waves import State
from fleet.models import FleetUpgrade, ServiceUpgrade


def outdated_services(*, cluster: str = "", namespace: str = "") -> QuerySet[Revision]:
    """Return the stable revisions of services that an upgrade would renew, those of one cluster or namespace only."""
    found = outdated_query()
    if cluster:
        found = found.filter(service__cluster__name=cluster)
    if namespace:
        found = found.filter(service__namespace=namespace)
    return found


def upgrade_query() -> QuerySet[FleetUpgrade]:
    """Return all upgrades, each with the number of its services in each state (`upgrade_counts`)."""
    counts = {f"count_{state.value.lower()}": Count("services", filter=Q(services__state=state)) for state in State}
    return FleetUpgrade.objects.select_related("cluster").annotate(**counts)


def upgrade_get(*, upgrade_id: int) -> FleetUpgrade:
    """Return an upgrade; raises NotFound."""
    found = upgrade_query().filter(pk=upgrade_id).first()
    if found is None:
        raise NotFound(f"there is no upgrade {upgrade_id} of the fleet; GET /api/v1/fleet/upgrades lists them")
    return found


def upgrade_services(*, upgrade: FleetUpgrade) -> QuerySet[ServiceUpgrade]:
    """Return the services of an upgrade."""
    return ServiceUpgrade.objects.filter(upgrade=upgrade).select_related("service__cluster", "rollout")


def upgrade_counts(*, upgrade: FleetUpgrade) -> Mapping[State, int]:
    """Return how many services of an upgrade, as `upgrade_query` returns it, are in each state."""
    return {state: int(getattr(upgrade, f"count_{state.value.lower()}")) for state in State}
