"""Verification of an exported audit log: its hash chain, its signed checkpoints and its signed first line.

It works on the file alone. `docs/how-to/audit.md` has the format; hashes are SHA-256, signatures Ed25519 (RFC 8032).
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from fairlead_cli.errors import CliError

FORMAT = "fairlead-audit-1"
_START = "0" * 64
_LATE = timedelta(hours=2)
_FIELDS = ("at", "actor", "action", "target", "detail", "before", "after", "request_id")
_LINK = {"position": int, "hash": str}
_CHECKPOINT = {**_LINK, "entry": int, "pruned": bool, "at": str, "signature": str}
_HEAD = {**_LINK, "format": str, "at": str, "pruned": object, "public_keys": list, "signature": str}
_ENTRY = {**_LINK, "id": int, "linked_at": str}
_EVERY = 10_000
_NO_LOG = "the file is no audit log with its hash chain; make one with `fairlead audit export`"

SignedBy = Callable[[Mapping[str, Any]], bool]


class BrokenLogError(CliError):
    """The log was changed; the message says what and where."""


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """What a whole file has.

    Attributes:
        at: when it was exported.
        checked: entries in it.
        pruned: entries that were removed by pruning before.
        public_keys: those that its signatures were checked with.
    """

    at: str
    checked: int
    pruned: int
    public_keys: tuple[str, ...]


def verify_lines(
    lines: Iterable[bytes], *, trusted: Iterable[str] = (), progress: Callable[[int], None] = lambda _: None
) -> VerifiedFile:
    """Check an exported file.

    Args:
        trusted: public keys in hexadecimal; by default the file's own.
        progress: called with the number of checked entries from time to time.

    Raises:
        BrokenLogError: it was changed.
        CliError: it is no such file, or a key is none.
    """
    numbered = enumerate(lines, start=1)
    head = _object(next(numbered, (1, b""))[1], 1)
    if (
        not _has(head, _HEAD)
        or head["format"] != FORMAT
        or not all(isinstance(key, str) for key in head["public_keys"])
    ):
        raise CliError(_NO_LOG)
    keys = tuple(trusted) or tuple(head["public_keys"])
    signed = _signature_check(keys)
    if not signed(head):
        raise BrokenLogError("its first line was changed, or is signed by another key")
    chain = _Chain(head, signed)
    for number, line in numbered:
        row = _object(line, number)
        if set(row) == {"checkpoint"}:
            chain.expect(_checkpoint(row["checkpoint"], number))
        else:
            chain.check(row, number)
            if chain.checked % _EVERY == 0:
                progress(chain.checked)
    chain.end()
    return VerifiedFile(head["at"], chain.checked, chain.start, keys)


class _Chain:
    """The chain so far: the last position, and the hash there."""

    def __init__(self, head: Mapping[str, Any], signed: SignedBy) -> None:
        self._signed, self._end = signed, (head["position"], head["hash"])
        self.position, self.hash, self.checked, self.entry = 0, _START, 0, 0
        self._newest: tuple[int, datetime] | None = None
        if head["pruned"] is not None:
            pruned = _checkpoint(head["pruned"], 1)
            self._check_signature(pruned)
            self.position, self.hash, self.entry = pruned["position"], pruned["hash"], pruned["entry"]
        self.start = self.position

    def expect(self, checkpoint: Mapping[str, Any]) -> None:
        """Check a checkpoint, which follows the entry that it signed."""
        self._check_signature(checkpoint)
        if (checkpoint["position"], checkpoint["hash"]) != (self.position, self.hash):
            raise BrokenLogError(
                f"the chain up to entry {self.entry} (position {self.position}) was rewritten after signing, or its "
                f"checkpoint at position {checkpoint['position']} was moved"
            )

    def check(self, row: Mapping[str, Any], number: int) -> None:
        """Check the next entry."""
        if not _has({name: row.get(name) for name in _ENTRY}, _ENTRY):
            raise BrokenLogError(f"line {number} is neither an entry nor a checkpoint")
        entry, position = row["id"], row["position"]
        if position != self.position + 1:
            where = f"the entries at positions {self.position + 1} to {position - 1} were removed"
            if position <= self.position:
                where = f"position {position} is there again"
            raise BrokenLogError(f"{where}, before entry {entry}")
        if set(row) == set(_ENTRY):
            raise BrokenLogError(f"entry {entry} (position {position}) was removed")
        fields = {name: row[name] for name in _FIELDS if name in row}
        content = {"position": position, "entry": entry, "linked_at": row["linked_at"], "fields": fields}
        digest = sha256(bytes.fromhex(self.hash) + _canonical(content)).hexdigest()
        if digest != row["hash"] or set(row) != {*_ENTRY, *_FIELDS}:
            raise BrokenLogError(f"entry {entry} (position {position}) was changed or moved")
        self._check_time(entry, position, row["linked_at"])
        self.position, self.hash, self.entry = position, digest, entry
        self.checked += 1

    def end(self) -> None:
        """Check that the file ends where its first line says."""
        position, digest = self._end
        if self.position < position:
            raise BrokenLogError(
                f"the end of the log was removed: it ends at entry {self.entry} (position {self.position}), "
                f"position {position} was signed"
            )
        if (self.position, self.hash) != (position, digest):
            raise BrokenLogError(
                f"the chain up to entry {self.entry} (position {position}) was rewritten after signing"
            )

    def _check_signature(self, checkpoint: Mapping[str, Any]) -> None:
        if not self._signed(checkpoint):
            raise BrokenLogError(
                f"the checkpoint at position {checkpoint['position']} (entry {checkpoint['entry']}) is forged, or "
                "signed by another key"
            )

    def _check_time(self, entry: int, position: int, linked_at: str) -> None:
        try:
            at = datetime.fromisoformat(linked_at)
            late = self._newest is not None and at - self._newest[1] > _LATE
        except (ValueError, TypeError):
            raise BrokenLogError(f"entry {entry} (position {position}) has no time of chaining") from None
        if self._newest is None or entry > self._newest[0]:
            self._newest = (entry, at)
        elif late:
            raise BrokenLogError(f"entry {entry} (position {position}) was inserted among older entries")


def _signature_check(keys: Iterable[str]) -> SignedBy:
    """Return a function that checks an object's `signature` over the rest of it, by any of the keys."""
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    except ImportError:
        raise CliError(
            "signatures are checked with the package cryptography, which is missing; pip install 'fairlead[audit]'"
        ) from None
    public = []
    for key in keys:
        try:
            public.append(Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)))
        except ValueError:
            raise CliError(f"{key[:80]!r} is no public key; expected 64 hexadecimal digits") from None

    def signed(value: Mapping[str, Any]) -> bool:
        content = {name: each for name, each in value.items() if name != "signature"}
        for key in public:
            try:
                key.verify(bytes.fromhex(value["signature"]), _canonical(content))
            except (InvalidSignature, ValueError):
                continue
            return True
        return False

    return signed


def _checkpoint(value: object, number: int) -> dict[str, Any]:
    if not isinstance(value, dict) or not _has(value, _CHECKPOINT) or not re.fullmatch("[0-9a-f]{64}", value["hash"]):
        raise BrokenLogError(f"line {number} has a checkpoint that is none")
    return value


def _has(value: Mapping[str, Any], kinds: Mapping[str, type]) -> bool:
    """Return whether it has exactly these fields, of these types; true and false are no numbers."""
    return set(value) == set(kinds) and all(
        isinstance(value[name], kind) and (kind is bool or kind is object or not isinstance(value[name], bool))
        for name, kind in kinds.items()
    )


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        if number == 1:
            raise CliError(_NO_LOG)
        raise BrokenLogError(f"line {number} is no JSON object with each field once: it was changed, or cut off")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a field is there twice")
    return value


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
