"""Hash chain of the audit log: SHA-256 over the previous hash and the canonical JSON of an entry.

A link gives an entry its position. Checkpoints sign the hash at a position with Ed25519 (RFC 8032), so that a rebuilt
chain is found too.
"""

import json
from collections.abc import Mapping
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
EXPORT_FORMAT = "fairlead-audit-1"
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
        content = {"position": position, "entry": entry, "linked_at": moment_text(now), "fields": fields}
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
        return json.dumps(signed_line(self, signature)) + "\n"

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

    def __init__(self, *, start: tuple[int, str] = (0, START), newest: Link | None = None) -> None:
        """Start behind a position and the hash there, both checked already.

        Args:
            newest: of the links up to there the one with the highest entry id; None where they were pruned.
        """
        self.position, self._hash = start
        self.checked = 0
        self.broken = ""
        self._newest_entry = None if newest is None else (newest.entry, newest.linked_at)
        self._expected: dict[int, Checkpoint] = {}

    def expect(self, checkpoint: Checkpoint) -> None:
        """Check the chain against a checkpoint with a valid signature too; one before the start changes nothing."""
        if checkpoint.position < self.position or self.broken:
            return
        known = self._hash if checkpoint.position == self.position else None
        known = known or self._expected.setdefault(checkpoint.position, checkpoint).hash
        if known != checkpoint.hash:
            self.broken = f"the chain up to entry {checkpoint.entry} was rewritten after signing"

    def check(self, link: Link, fields: Mapping[str, object] | None) -> None:
        """Check the next link with its entry's fields; None where the entry is missing."""
        if self.broken:
            return
        if link.position != self.position + 1:
            missing = f"links {self.position + 1} to {link.position - 1} of the chain were removed"
            self.broken = f"{missing}, before entry {link.entry}"
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
        signed = self._expected.pop(link.position, None)
        if signed is not None and signed.hash != link.hash:
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
        beyond = max(self._expected.values(), key=lambda each: each.position, default=None)
        if not self.broken and beyond is not None and beyond.position > self.position:
            ends = f"it ends at position {self.position}, {beyond.position} was signed (entry {beyond.entry})"
            self.broken = f"the end of the log was removed: {ends}"


@dataclass(frozen=True, slots=True)
class ExportHead:
    """The first line of an exported chain, signed, so that a file without its end is found.

    Attributes:
        pruned: the checkpoint that the file begins behind, with its signature; None where nothing was pruned.
        position, hash: of the last link in the file.
        public_keys: of the installation, in hexadecimal.
    """

    at: datetime
    pruned: tuple[Checkpoint, str] | None
    position: int
    hash: str
    public_keys: tuple[str, ...]

    def line(self, private: str) -> dict[str, object]:
        """Return the line, signed with a private key in hexadecimal."""
        content = {
            "format": EXPORT_FORMAT,
            "at": moment_text(self.at),
            "pruned": None if self.pruned is None else signed_line(*self.pruned),
            "position": self.position,
            "hash": self.hash,
            "public_keys": list(self.public_keys),
        }
        signature = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private)).sign(_canonical(content)).hex()
        return {**content, "signature": signature}


def signed_line(checkpoint: Checkpoint, signature: str) -> dict[str, object]:
    """Return a checkpoint with its signature, as files and the API have it."""
    return {**asdict(checkpoint), "signature": signature}


def entry_fields(entry: object) -> dict[str, object]:
    """Return the fields of an entry that its hash is over, times in UTC."""
    values = {name: getattr(entry, name) for name in _FIELDS}
    return {name: moment_text(value) if isinstance(value, datetime) else value for name, value in values.items()}


def public_of(private: str) -> str:
    """Return the public key of a private one, both in hexadecimal."""
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private)).public_key().public_bytes_raw().hex()


def moment_text(at: datetime) -> str:
    """Return a time as hashes and files have it: in UTC, with microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
