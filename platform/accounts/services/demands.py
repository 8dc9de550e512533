"""Changes of demands: what a team or a namespace demands of rollouts and approvals."""

from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.domain.demand import Demand
from accounts.models import DemandRow
from accounts.services import audit_record
from accounts.services.teams import team_get
from common.identifiers import check_dns_label


def team_demand_set(*, team: str, demand: Demand, actor: str, now: datetime) -> Demand:
    """Set what the team demands in all its namespaces; an empty demand lifts it. Raises NotFound, InvalidInput."""
    return _set({"team": team_get(name=team)}, f"teams/{team}/demand", demand, actor, now)


def namespace_demand_set(*, namespace: str, demand: Demand, actor: str, now: datetime) -> Demand:
    """Set what the namespace demands, beside its team; an empty demand lifts it. Raises InvalidInput."""
    check_dns_label(namespace, field="namespace")
    return _set({"namespace": namespace}, f"namespaces/{namespace}/demand", demand, actor, now)


@transaction.atomic
def _set(whose: dict[str, Any], target: str, demand: Demand, actor: str, now: datetime) -> Demand:
    demand.check()
    row = DemandRow.objects.select_for_update(of=("self",)).select_related("team").filter(**whose).first()
    before = None if row is None else row.demand.as_json()
    after = demand.as_json() if demand else None
    if before == after:
        return demand
    if not demand:
        DemandRow.objects.filter(**whose).delete()
    else:
        DemandRow.objects.update_or_create(
            **whose, defaults={**demand.as_json(), "changed_at": now, "changed_by": actor}
        )
    audit_record(actor=actor, action="demand.set", target=target, now=now, before=before, after=after)
    return demand
