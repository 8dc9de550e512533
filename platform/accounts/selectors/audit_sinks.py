"""State of the audit log's sinks: how far each is behind, and why."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.conf import settings

from accounts.domain.audit_sinks import SinkName
from accounts.models import AuditLink, AuditSink
from accounts.selectors.audit_chain import pruned_to


@dataclass(frozen=True, slots=True)
class SinkState:
    """One configured sink.

    Attributes:
        address: without what may be secret.
        position: of the last entry that it took.
        waiting: chained entries that it has not taken.
        lag: since the oldest of them was chained.
        sent_at: when it last took some; None where it never did.
        error: why it does not take the next one; empty where it does.
    """

    name: SinkName
    address: str
    position: int
    waiting: int
    lag: timedelta
    sent_at: datetime | None
    error: str


def sink_states(*, now: datetime) -> list[SinkState]:
    """Return the sinks of the settings."""
    addresses = _addresses()
    if not addresses:
        return []
    rows = AuditSink.objects.in_bulk(list(addresses))
    newest = AuditLink.objects.order_by("-position").values_list("position", flat=True).first() or 0
    pruned = pruned_to()
    start = 0 if pruned is None else pruned[0].position
    states = []
    for name, address in addresses.items():
        row = rows.get(name)
        position = 0 if row is None else row.position
        following = AuditLink.objects.filter(position__gt=position).order_by("position")
        oldest = following.values_list("linked_at", flat=True).first()
        lag = timedelta(0) if oldest is None else max(timedelta(0), now - oldest)
        waiting = max(0, newest - max(position, start))
        sent_at, error = (None, "") if row is None else (row.sent_at, row.error)
        states.append(SinkState(name, address, position, waiting, lag, sent_at, error))
    return states


def _addresses() -> dict[SinkName, str]:
    found = {}
    if settings.AUDIT_SYSLOG is not None:
        found[SinkName.SYSLOG] = str(settings.AUDIT_SYSLOG)
    if settings.AUDIT_WEBHOOK:
        parts = urlsplit(settings.AUDIT_WEBHOOK)
        found[SinkName.WEBHOOK] = f"{parts.scheme}://{parts.netloc}"
    return found
