"""Hourly prices of replicas on a cluster, set by administrators."""

from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from clusters.domain.pricing import REPLICA
from clusters.models import Cluster
from common.errors import InvalidInput, NotFound
from common.files.document import Document

_MOST = 1e6
_LONGEST_CURRENCY = 12
_LONGEST_NAME = 253
_MOST_PRICES = 100


@transaction.atomic
def cluster_prices_set(*, name: str, document: object, actor: str, now: datetime) -> Cluster:
    """Set all prices of a cluster. Idempotent.

    Args:
        document: `{"currency": "EUR", "per_hour": {"nvidia.com/mig-1g.10gb": 0.42, "replica": 0.05}}`; a resource that
            is left out loses its price.

    Raises:
        InvalidInput: with the name of the field at fault.
        NotFound: no such cluster.
    """
    prices = parse_prices(document)
    row = Cluster.objects.select_for_update().filter(name=name).first()
    if row is None:
        raise NotFound(f"there is no cluster {name!r}")
    if row.prices == prices:
        return row
    before, row.prices = row.prices, prices
    row.save(update_fields=["prices"])
    audit_record(actor=actor, action="cluster.prices", target=f"clusters/{name}", now=now, before=before, after=prices)
    return row


def parse_prices(value: object) -> dict[str, object]:
    """Return the prices in their stored form; raises InvalidInput. Pure."""
    file = Document.of(value, "the prices")
    currency = file.text("currency", default="").strip()
    if len(currency) > _LONGEST_CURRENCY:
        raise InvalidInput(
            f"currency has {len(currency)} characters; a short one such as EUR is expected", field="currency"
        )
    per_hour = file.document("per_hour")
    names = list(file.raw("per_hour"))
    if len(names) > _MOST_PRICES:
        raise InvalidInput(f"per_hour has {len(names)} prices; {_MOST_PRICES} at most", field="per_hour")
    if odd := next((each for each in names if not _is_resource(each)), None):
        expected = f"{REPLICA!r}, or an extended resource such as nvidia.com/gpu"
        raise InvalidInput(f"per_hour has a price of {odd[:80]!r}; expected {expected}", field="per_hour")
    found = {each: per_hour.number(each, minimum=0, maximum=_MOST) for each in sorted(names)}
    file.refuse_unknown()
    if found and not currency:
        raise InvalidInput("currency is missing; prices need one, such as EUR", field="currency")
    return {"currency": currency, "per_hour": found} if found else {}


def _is_resource(name: str) -> bool:
    return name == REPLICA or ("/" in name and len(name) <= _LONGEST_NAME and name == name.strip())
