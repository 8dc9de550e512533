"""Hash chain of the audit log: SHA-256 over the previous hash and the canonical JSON of an entry.

A link gives an entry its position. Checkpoints sign the hash at a position with Ed25519 (RFC 8032), so that a rebuilt
chain is found too.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from common.errors import InvalidInput

START = "0" * 64
"""The hash before the first entry."""
LOOK_BACK = 10_000
"""Ids below the newest linked one among which entries of transactions that committed late are looked for."""
_LATE = timedelta(hours=2)
_FIELDS = ("at", "actor", "action", "target", "detail", "before", "after", "request_id")


@dataclass(frozen=True, slots=True)
class Link:
    """An entry's place in the chain.

    Attributes:
        position: from 1, without gaps.
        entry: the entry's id.
        linked_at: when it was chained.
        hash: in hexadecimal.
    """

    position: int
    entry: int
    linked_at: datetime
    hash: str

    @classmethod
    def after(cls, previous: str, *, position: int, entry: int, fields: Mapping[str, object], now: datetime) -> "Link":
        """Return the link of an entry behind the hash `previous`."""
        content = {"position": position, "entry": entry, "linked_at": _moment(now), "fields": fields}
        digest = sha256(bytes.fromhex(previous) + _canonical(content)).hexdigest()
        return cls(position, entry, now, digest)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The hash of the chain at a position, to be signed.

    Attributes:
        entry: the id of the entry there.
        pruned: entries up to there were removed on purpose.
        at: when it was signed, in RFC 3339.
    """

    position: int
    entry: int
    hash: str
    pruned: bool
    at: str

    def signed(self, private: str) -> str:
        """Return the signature in hexadecimal, by a private key in hexadecimal."""
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private)).sign(_canonical(asdict(self))).hex()

    def is_signed_by(self, public: str, signature: str) -> bool:
        """Return whether the signature is of this checkpoint and key, both in hexadecimal."""
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
            key.verify(bytes.fromhex(signature), _canonical(asdict(self)))
        except (InvalidSignature, ValueError):
            return False
        return True

    def text(self, signature: str) -> str:
        """Return it with its signature as a line of JSON, for a file that is kept elsewhere."""
        return json.dumps({**asdict(self), "signature": signature}) + "\n"

    @classmethod
    def of_text(cls, text: str) -> "tuple[Checkpoint, str]":
        """Return a checkpoint and its signature from such a line; raises InvalidInput."""
        kinds = {"position": int, "entry": int, "hash": str, "pruned": bool, "at": str, "signature": str}
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or {name: type(value) for name, value in found.items()} != kinds:
            raise InvalidInput(
                "the file is no checkpoint of the audit log; use one that `audit_verify --save` wrote",
                field="checkpoint",
            )
        signature = found.pop("signature")
        return cls(**found), signature


class Verifier:
    """Checks links one after the other; `broken` has the first fault found, or is empty.

    Attributes:
        position: the last checked position.
        checked: how many links were checked.
    """

    def __init__(self, *, start: Checkpoint | None, checkpoints: Iterable[Checkpoint]) -> None:
        """Start behind a checkpoint of pruned entries, or at the first entry; all checkpoints have valid signatures."""
        self.position = 0 if start is None else start.position
        self.checked = 0
        self.broken = ""
        self._hash = START if start is None else start.hash
        self._newest_entry: tuple[int, datetime] | None = None
        self._expected = {each.position: each.hash for each in checkpoints if each.position > self.position}
        if start is not None:
            self._expected[start.position] = start.hash

    def check(self, link: Link, fields: Mapping[str, object] | None) -> None:
        """Check the next link with its entry's fields; None where the entry is missing."""
        if self.broken:
            return
        if link.position != self.position + 1:
            self.broken = f"links {self.position + 1} to {link.position - 1} of the chain were removed"
            return
        if fields is None:
            self.broken = f"entry {link.entry} (position {link.position}) was removed"
            return
        expected = Link.after(
            self._hash, position=link.position, entry=link.entry, fields=fields, now=link.linked_at
        ).hash
        if expected != link.hash:
            self.broken = f"entry {link.entry} (position {link.position}) was changed, or its link was moved"
            return
        if self._expected.get(link.position, link.hash) != link.hash:
            self.broken = f"the chain up to entry {link.entry} was rewritten after signing"
            return
        newest = self._newest_entry
        if newest is None or link.entry > newest[0]:
            self._newest_entry = (link.entry, link.linked_at)
        elif link.linked_at - newest[1] > _LATE:
            self.broken = f"entry {link.entry} (position {link.position}) was inserted among older entries"
            return
        self.position, self._hash = link.position, link.hash
        self.checked += 1

    def end(self) -> None:
        """Check that the chain reaches every checkpoint."""
        beyond = max(self._expected, default=0)
        if not self.broken and beyond > self.position:
            self.broken = f"the end of the log was removed: it ends at position {self.position}, {beyond} was signed"


def entry_fields(entry: object) -> dict[str, object]:
    """Return the fields of an entry that its hash is over, times in UTC."""
    values = {name: getattr(entry, name) for name in _FIELDS}
    return {name: _moment(value) if isinstance(value, datetime) else value for name, value in values.items()}


def public_of(private: str) -> str:
    """Return the public key of a private one, both in hexadecimal."""
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private)).public_key().public_bytes_raw().hex()


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
