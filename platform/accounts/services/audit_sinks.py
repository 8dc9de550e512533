"""Sinks of the audit log: every chained entry is sent to each, in the order of the chain, at least once.

A sink's row has the position up to which it took the entries. One worker at a time sends to it: a claim is a
conditional UPDATE of the time of the next try, which is also what fences a worker that was too slow. A sink that is
down delays only itself.

    due --claim--> held --all sent--> due
                   held --refused--> due, later each time
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet

from accounts.domain.audit_sinks import HELD_FOR, retry_after
from accounts.models import AuditLink, AuditSink
from accounts.selectors.audit_chain import with_entries
from accounts.selectors.audit_chain_export import entry_line

_AT_ONCE = 200
_BYTES_AT_ONCE = 500_000
_MAX_ERROR = 500


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to send to a sink.

    Attributes:
        position: that of the last entry which the sink took.
        until: the end of the claim, which is also its name.
    """

    sink: str
    position: int
    until: datetime


def sink_claim(*, sink: str, now: datetime) -> Claim | None:
    """Claim the sink; None where it is not due or another worker has it. A new one begins with the oldest entry."""
    row = AuditSink.objects.get_or_create(name=sink, defaults={"next_try_at": now})[0]
    if row.next_try_at > now:
        return None
    until = now + HELD_FOR
    due = AuditSink.objects.filter(name=sink, position=row.position, next_try_at=row.next_try_at)
    return Claim(sink, row.position, until) if due.update(next_try_at=until) else None


def sink_batch(claim: Claim) -> list[dict[str, object]]:
    """Return the next entries to send, at most 200 and about half a megabyte; empty where all were sent."""
    links: list[AuditLink] = list(AuditLink.objects.filter(position__gt=claim.position).order_by("position")[:_AT_ONCE])
    lines: list[dict[str, object]] = []
    size = 0
    for link, entry in with_entries(links):
        line = entry_line(link, entry)
        size += len(json.dumps(line))
        if lines and size > _BYTES_AT_ONCE:
            break
        lines.append(line)
    return lines


def sink_advance(claim: Claim, *, sent: Sequence[dict[str, object]], now: datetime) -> Claim | None:
    """Record that the sink took the entries; None where the claim has ended."""
    position, until = int(str(sent[-1]["position"])), now + HELD_FOR
    took = _held(claim).update(position=position, next_try_at=until, sent_at=now, failures=0, error="")
    return replace(claim, position=position, until=until) if took else None


def sink_release(claim: Claim, *, now: datetime) -> None:
    """End the claim: the sink is due again."""
    _held(claim).update(next_try_at=now, failures=0, error="")


def sink_fail(claim: Claim, *, error: str, now: datetime) -> None:
    """Record why the sink did not take entries, and end the claim; the next try is later each time."""
    failures = AuditSink.objects.values_list("failures", flat=True).get(name=claim.sink) + 1
    _held(claim).update(
        next_try_at=now + retry_after(failures), failures=min(failures, 30_000), error=error[:_MAX_ERROR], failed_at=now
    )


def _held(claim: Claim) -> QuerySet[AuditSink]:
    return AuditSink.objects.filter(name=claim.sink, position=claim.position, next_try_at=claim.until)
