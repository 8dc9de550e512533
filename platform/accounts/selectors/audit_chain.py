"""Verification of the audit log's hash chain, streamed. Read-only."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from accounts.domain.audit_chain import LOOK_BACK, Checkpoint, Link, Verifier, entry_fields, public_of
from accounts.models import AuditCheckpoint, AuditEntry, AuditLink, AuditSigningKey
from common.encryption import unseal
from common.errors import InvalidInput, Unavailable

KEY_PURPOSE = "audit signing key"
Signed = tuple[Checkpoint, str]
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification.

    Attributes:
        broken: the first fault, as a sentence; empty where what was checked is whole.
        checked: entries checked.
        waiting: entries that are not chained yet; 0 where the verification was not complete.
        pruned: entries that were removed by pruning.
        newest: the newest checkpoint and its signature; None where nothing was signed yet.
        position: the last checked position.
        complete: whether the end of the chain was reached, or a fault.
    """

    broken: str
    checked: int
    waiting: int
    pruned: int
    newest: Signed | None
    position: int = 0
    complete: bool = True


def audit_verify(
    *,
    external: Signed | None = None,
    progress: Callable[[int], None] = lambda _: None,
    after: int = 0,
    limit: int | None = None,
) -> Verified:
    """Check entries, links and checkpoints: all, or a part of the chain.

    A pruning that ends meanwhile is no fault: the verification begins again behind it.

    Args:
        external: a checkpoint and its signature that were kept elsewhere; only these show that the end of the log and
            everything signed about it were removed together.
        progress: called with the number of checked entries from time to time.
        after: the position where a verification before ended.
        limit: ends it after that many entries, or up to 1000 more.

    Raises:
        InvalidInput: the chain ends before `after`.
    """
    while True:
        pruned = pruned_to()
        found = _verify(external, progress, after, limit)
        if not found.broken or pruned_to() == pruned:
            return found


def pruned_to() -> Signed | None:
    """Return the checkpoint of the last pruning, or None; its signature is not checked."""
    return _newest(pruned=True)


def public_keys() -> list[str]:
    """Return the keys that signatures of this installation are checked with, in hexadecimal, newest first."""
    return [public_of(private) for private in private_keys()]


def private_keys() -> list[str]:
    """Return the readable signing keys, newest first; a public key follows from each, so that none can be forged."""
    keys = []
    for key in AuditSigningKey.objects.order_by("-id"):
        try:
            keys.append(unseal(key.sealed, purpose=KEY_PURPOSE))
        except Unavailable:  # a checkpoint that needs it is reported
            continue
    return keys


def with_entries(links: Iterable[AuditLink]) -> list[tuple[AuditLink, AuditEntry | None]]:
    """Return links with their entries; None for a removed one."""
    links = list(links)
    entries = AuditEntry.objects.in_bulk([link.entry for link in links])
    return [(link, entries.get(link.entry)) for link in links]


def checkpoints_between(first: int, last: int | None) -> list[Signed]:
    """Return the checkpoints of these positions, both included; all from `first` on for None."""
    rows = AuditCheckpoint.objects.filter(position__gte=first).order_by("position", "id")
    return [_signed(row) for row in (rows if last is None else rows.filter(position__lte=last))]


def _verify(external: Signed | None, progress: Callable[[int], None], after: int, limit: int | None) -> Verified:
    keys = public_keys()
    pruned, newest = pruned_to(), _newest()
    removed = 0 if pruned is None else pruned[0].position
    for each in (pruned, external):
        if each is not None and not _is_signed(each, keys):
            return Verified(_unsigned(each[0]), 0, 0, 0, newest)
    verifier = _begin(after, pruned)
    if external is not None:
        verifier.expect(external[0])
    while True:
        links = list(AuditLink.objects.filter(position__gt=verifier.position).order_by("position")[:_AT_ONCE])
        until = links[-1].position if len(links) == _AT_ONCE else None
        # Later checkpoints may be of entries that were chained since the links were read.
        seen = max(links[-1].position if links else verifier.position, 0 if newest is None else newest[0].position)
        for signed in checkpoints_between(verifier.position, until or seen):
            if not _is_signed(signed, keys):
                return Verified(_unsigned(signed[0]), verifier.checked, 0, removed, newest)
            verifier.expect(signed[0])
        for row, entry in with_entries(links):
            verifier.check(_link(row), None if entry is None else entry_fields(entry))
        if until is None or verifier.broken:
            break
        progress(verifier.checked)
        if limit is not None and verifier.checked >= limit:
            return Verified("", verifier.checked, 0, removed, newest, verifier.position, complete=False)
    verifier.end()
    waiting, inserted = _unchained()
    return Verified(verifier.broken or inserted, verifier.checked, waiting, removed, newest, verifier.position)


def _begin(after: int, pruned: Signed | None) -> Verifier:
    """Return a verifier that goes on behind `after`, or behind the last pruned entry where that is later."""
    if pruned is not None and pruned[0].position >= after:
        return Verifier(start=(pruned[0].position, pruned[0].hash))
    if not after:
        return Verifier()
    link = AuditLink.objects.filter(position=after).first()
    if link is None:
        raise InvalidInput(f"after is {after}; the chain has no such position", field="after")
    near = AuditLink.objects.filter(position__lte=after, position__gt=after - LOOK_BACK)
    newest = near.order_by("-entry").first()
    return Verifier(start=(link.position, link.hash), newest=None if newest is None else _link(newest))


def _unchained() -> tuple[int, str]:
    """Return how many entries are not chained, and a sentence for one that is too old to be chained."""
    newest = AuditLink.objects.order_by("-entry").values_list("entry", flat=True).first() or 0
    waiting = AuditEntry.objects.filter(~Exists(AuditLink.objects.filter(entry=OuterRef("pk"))))
    old = waiting.filter(pk__lte=newest - LOOK_BACK).order_by("pk").values_list("pk", flat=True).first()
    return waiting.count(), "" if old is None else f"entry {old} was inserted among older entries: it is not chained"


def _newest(**which: bool) -> Signed | None:
    row = AuditCheckpoint.objects.filter(**which).order_by("-position", "-id").first()
    return None if row is None else _signed(row)


def _signed(row: AuditCheckpoint) -> Signed:
    return Checkpoint(row.position, row.entry, row.hash, row.pruned, row.at), row.signature


def _link(row: AuditLink) -> Link:
    return Link(row.position, row.entry, row.linked_at, row.hash)


def _is_signed(signed: Signed, keys: list[str]) -> bool:
    checkpoint, signature = signed
    return any(checkpoint.is_signed_by(key, signature) for key in keys)


def _unsigned(checkpoint: Checkpoint) -> str:
    return (
        f"the checkpoint at position {checkpoint.position} is signed by no key of this installation: it was forged, or "
        "FAIRLEAD_SECRET_KEY was replaced without its former value in FAIRLEAD_SECRET_KEY_FALLBACKS"
    )
