"""Hash chain of the audit log: chains committed entries, signs checkpoints, prunes.

Writers of entries take no lock: entries are chained a few seconds after their transaction has committed, by one writer
at a time (decision 0030).
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import IntegrityError, models, transaction
from django.db.models import Exists, OuterRef

from accounts.domain.audit_chain import LOOK_BACK, START, Checkpoint, Link, entry_fields
from accounts.models import AuditCheckpoint, AuditEntry, AuditLink, AuditSigningKey
from accounts.selectors.audit_chain import KEY_PURPOSE, audit_verify, private_keys, pruned_to
from accounts.selectors.audit_protection import audit_may_prune
from accounts.selectors.audit_sinks import sink_states
from accounts.services import audit_record
from common.encryption import seal
from common.errors import Conflict, InvalidInput, Unavailable
from common.randomness import new_private_key

logger = logging.getLogger(__name__)
_BATCH = 1000


def audit_chain(*, now: datetime) -> int:
    """Chain all committed entries that are not chained yet and return their number; another call at once gets none."""
    total = 0
    while True:
        try:
            count = _chain_batch(now)
        except IntegrityError:  # another process chained the same entries first
            return total
        total += count
        if count < _BATCH:
            return total


def audit_prune(*, before: datetime, actor: str, now: datetime) -> int:
    """Remove the oldest entries, up to the first one at or after `before`, and return their number.

    A signed checkpoint keeps the hash of the last removed entry; an entry `audit.prune` has the number.

    Raises:
        InvalidInput: `before` is in the future.
        Conflict: the chain is broken, which pruning would hide; a sink has not taken the entries yet; or the
            database role may not remove them.
        Unavailable: the signing key cannot be read.
    """
    if before > now:
        raise InvalidInput(f"{before:%Y-%m-%d} is in the future; name a day up to today", field="before")
    if not audit_may_prune():
        raise Conflict(
            "the database role of the control plane may not remove audit entries; run audit_prune with "
            "FAIRLEAD_DATABASE_URL of the owner of the tables"
        )
    audit_chain(now=now)
    broken = audit_verify().broken
    if broken:
        raise Conflict(f"the audit log is broken, and pruning would hide that: {broken}")
    recent = AuditEntry.objects.filter(at__gte=before)
    kept = AuditLink.objects.filter(entry__in=recent.values("pk")).aggregate(first=models.Min("position"))["first"]
    old = AuditLink.objects.order_by("-position")
    last = (old if kept is None else old.filter(position__lt=kept)).first()
    if last is None:
        return 0
    _check_sinks(last.position, now)
    with transaction.atomic():
        _sign(last, pruned=True, now=now)
        removed = AuditLink.objects.filter(position__lte=last.position)
        # The model's manager refuses deletions, which is meant for all other code.
        count = models.QuerySet(AuditEntry).filter(pk__in=removed.values("entry")).delete()[0]
        removed.delete()
        AuditCheckpoint.objects.filter(position__lt=last.position).delete()
        audit_record(
            actor=actor,
            action="audit.prune",
            target="audit",
            now=now,
            detail={"before": before.isoformat(), "removed": count},
        )
    return count


def _check_sinks(position: int, now: datetime) -> None:
    for sink in sink_states(now=now):
        if sink.position < position:
            raise Conflict(
                f"the sink {sink.name} has taken the audit log up to position {sink.position}, and pruning would "
                f"remove it up to {position}; wait until it has, or remove FAIRLEAD_AUDIT_{sink.name.name}"
            )


@transaction.atomic
def _chain_batch(now: datetime) -> int:
    newest = AuditLink.objects.order_by("-position").first()
    start = pruned_to()
    if newest is not None:
        position, previous = newest.position, newest.hash
    else:
        position, previous = (0, START) if start is None else (start[0].position, start[0].hash)
    links = []
    for entry in _unchained():
        position += 1
        link = Link.after(previous, position=position, entry=entry.pk, fields=entry_fields(entry), now=now)
        previous = link.hash
        links.append(AuditLink(position=position, entry=entry.pk, linked_at=now, hash=link.hash))
    if links:
        AuditLink.objects.bulk_create(links)
        try:
            _sign(links[-1], pruned=False, now=now)
        except Unavailable as error:
            logger.warning("the audit log was chained without a signed checkpoint: %s", error.message)
    return len(links)


def _unchained() -> Iterator[AuditEntry]:
    """Return the next entries to chain, lowest id first.

    Lower ids may be committed later, so that some ids below the newest chained one are looked at too.
    """
    newest = AuditLink.objects.aggregate(newest=models.Max("entry"))["newest"] or 0
    chained = Exists(AuditLink.objects.filter(entry=OuterRef("pk")))
    return AuditEntry.objects.filter(~chained, pk__gt=newest - LOOK_BACK).order_by("pk")[:_BATCH].iterator()


def _sign(link: AuditLink, *, pruned: bool, now: datetime) -> None:
    at = now.astimezone(UTC).isoformat(timespec="microseconds")
    checkpoint = Checkpoint(link.position, link.entry, link.hash, pruned, at)
    AuditCheckpoint.objects.create(
        position=link.position,
        entry=link.entry,
        hash=link.hash,
        pruned=pruned,
        at=at,
        signature=checkpoint.signed(_signing_key(now)),
    )


def _signing_key(now: datetime) -> str:
    keys = private_keys()
    if keys:
        return keys[0]
    if AuditSigningKey.objects.exists():
        raise Unavailable(
            "the audit signing key cannot be read with the present FAIRLEAD_SECRET_KEY; name the one it was kept under "
            "in FAIRLEAD_SECRET_KEY_FALLBACKS"
        )
    private = new_private_key()
    AuditSigningKey.objects.create(sealed=seal(private, purpose=KEY_PURPOSE), created_at=now)
    return private
