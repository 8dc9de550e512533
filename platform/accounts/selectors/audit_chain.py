"""Verification of the audit log's hash chain, streamed. Read-only."""

from collections.abc import Callable
from dataclasses import dataclass

from accounts.domain.audit_chain import LOOK_BACK, Checkpoint, Link, Verifier, entry_fields, public_of
from accounts.models import AuditCheckpoint, AuditEntry, AuditLink, AuditSigningKey
from common.encryption import unseal
from common.errors import Unavailable

KEY_PURPOSE = "audit signing key"
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification.

    Attributes:
        broken: the first fault, as a sentence; empty where the chain is whole.
        checked: entries checked.
        waiting: entries that are not chained yet.
        pruned: entries that were removed by pruning.
        newest: the newest checkpoint and its signature; None where nothing was signed yet.
    """

    broken: str
    checked: int
    waiting: int
    pruned: int
    newest: tuple[Checkpoint, str] | None


def audit_verify(
    *, external: tuple[Checkpoint, str] | None = None, progress: Callable[[int], None] = lambda _: None
) -> Verified:
    """Check every entry, link and checkpoint.

    Args:
        external: a checkpoint and its signature that were kept elsewhere; only these show that the end of the log and
            everything signed about it were removed together.
        progress: called with the number of checked entries from time to time.
    """
    keys = [public_of(private) for private in private_keys()]
    checkpoints: list[Checkpoint] = []
    newest: tuple[Checkpoint, str] | None = None
    for row in AuditCheckpoint.objects.order_by("position", "id").iterator(chunk_size=_AT_ONCE):
        checkpoint = _checkpoint(row)
        if not _is_signed(checkpoint, row.signature, keys):
            return Verified(_unsigned(checkpoint), 0, 0, 0, newest)
        checkpoints.append(checkpoint)
        newest = checkpoint, row.signature
    start = max((each for each in checkpoints if each.pruned), key=lambda each: each.position, default=None)
    if external is not None:
        if not _is_signed(*external, keys):
            return Verified(_unsigned(external[0]), 0, 0, 0, newest)
        checkpoints.append(external[0])
    verifier = Verifier(start=start, checkpoints=checkpoints)
    batch: list[AuditLink] = []
    for link in AuditLink.objects.order_by("position").iterator(chunk_size=_AT_ONCE):
        batch.append(link)
        if len(batch) == _AT_ONCE:
            _check(verifier, batch)
            progress(verifier.checked)
            batch = []
        if verifier.broken:
            break
    _check(verifier, batch)
    verifier.end()
    waiting, inserted = _unchained()
    broken = verifier.broken or inserted
    return Verified(broken, verifier.checked, waiting, 0 if start is None else start.position, newest)


def pruned_to() -> Checkpoint | None:
    """Return the checkpoint of the last pruning, or None; its signature is not checked."""
    row = AuditCheckpoint.objects.filter(pruned=True).order_by("-position").first()
    return None if row is None else _checkpoint(row)


def private_keys() -> list[str]:
    """Return the readable signing keys, newest first; a public key follows from each, so that none can be forged."""
    keys = []
    for key in AuditSigningKey.objects.order_by("-id"):
        try:
            keys.append(unseal(key.sealed, purpose=KEY_PURPOSE))
        except Unavailable:  # a checkpoint that needs it is reported
            continue
    return keys


def _check(verifier: Verifier, batch: list[AuditLink]) -> None:
    entries = AuditEntry.objects.in_bulk([link.entry for link in batch])
    for row in batch:
        entry = entries.get(row.entry)
        link = Link(row.position, row.entry, row.linked_at, row.hash)
        verifier.check(link, None if entry is None else entry_fields(entry))


def _unchained() -> tuple[int, str]:
    """Return how many entries are not chained, and a sentence for one that is too old to be chained."""
    newest = AuditLink.objects.order_by("-entry").values_list("entry", flat=True).first() or 0
    chained = AuditLink.objects.values("entry")
    waiting = AuditEntry.objects.exclude(pk__in=chained)
    old = waiting.filter(pk__lte=newest - LOOK_BACK).order_by("pk").values_list("pk", flat=True).first()
    return waiting.count(), "" if old is None else f"entry {old} was inserted among older entries: it is not chained"


def _checkpoint(row: AuditCheckpoint) -> Checkpoint:
    return Checkpoint(row.position, row.entry, row.hash, row.pruned, row.at)


def _is_signed(checkpoint: Checkpoint, signature: str, keys: list[str]) -> bool:
    return any(checkpoint.is_signed_by(key, signature) for key in keys)


def _unsigned(checkpoint: Checkpoint) -> str:
    return (
        f"the checkpoint at position {checkpoint.position} is signed by no key of this installation: it was forged, or "
        "FAIRLEAD_SECRET_KEY was replaced without its former value in FAIRLEAD_SECRET_KEY_FALLBACKS"
    )
