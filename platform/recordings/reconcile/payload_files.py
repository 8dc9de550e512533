"""Payload files of recordings: encrypted exchanges in order, readable by their owner only. Accessed by workers alone.

A line is the addition of one turn: its exchanges as JSON, compressed, encrypted under a key derived from
FAIRLEAD_SECRET_KEY. The valid length of a file is in the recording's row, which is written after the file: bytes beyond
it are of a turn whose transaction failed, and the next turn overwrites them.
"""

import json
import os
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from django.conf import settings

from common.encryption import resealed, seal_bytes, unseal_bytes
from common.errors import Unavailable
from integrations.clusters.base import Exchange

_PURPOSE = "recording of requests"
_SUFFIX = ".sealed"
_TAIL_BYTES = 4 << 20
_TAIL_UNPACKED_BYTES = 32 << 20


def append(recording_id: int, exchanges: Sequence[Exchange], *, at: int) -> int:
    """Write exchanges after the first `at` bytes and return the new valid length.

    Raises:
        Unavailable: the file cannot be written.
    """
    content = json.dumps([asdict(exchange) for exchange in exchanges]).encode()
    line = seal_bytes(zlib.compress(content), purpose=_PURPOSE) + b"\n"
    place = _place(recording_id)
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            file.truncate(at)
            file.seek(at)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            return file.tell()
    except OSError as error:
        raise Unavailable(f"the recording's file {place} cannot be written: {error}") from error


def read(recording_id: int, *, length: int) -> Iterator[Exchange]:
    """Yield the exchanges in the first `length` bytes.

    Raises:
        Unavailable: the file is missing, or was encrypted under another FAIRLEAD_SECRET_KEY.
    """
    if not length:
        return
    place = _place(recording_id)
    try:
        with place.open("rb") as file:
            while file.tell() < length and (line := file.readline()):
                content = zlib.decompress(unseal_bytes(line.rstrip(), purpose=_PURPOSE))
                yield from (Exchange(**each) for each in json.loads(content))
    except OSError as error:
        raise Unavailable(f"the recording's file {place} cannot be read: {error}") from error


def newest(recording_id: int, *, length: int, most: int) -> list[Exchange]:
    """Return up to `most` of the last exchanges in the first `length` bytes, the last one first.

    Reads the end of the file alone, so there can be fewer, even none, where single requests are large.

    Raises:
        Unavailable: as `read` raises.
    """
    if not length:
        return []
    place, begin = _place(recording_id), max(0, length - _TAIL_BYTES)
    try:
        with place.open("rb") as file:
            file.seek(begin)
            tail = file.read(length - begin)
    except OSError as error:
        raise Unavailable(f"the recording's file {place} cannot be read: {error}") from error
    lines = tail.splitlines()
    if begin:
        del lines[0]  # the rest of a line that began before
    found: list[Exchange] = []
    room = _TAIL_UNPACKED_BYTES
    for line in reversed(lines):
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(unseal_bytes(line, purpose=_PURPOSE), room)
        room -= len(content)
        if not unpacking.eof:
            break
        found += [Exchange(**each) for each in reversed(json.loads(content))]
        if len(found) >= most or room <= 0:
            break
    return found[:most]


def reseal(recording_id: int, *, length: int) -> bool:
    """Encrypt the first `length` bytes again under the current key, in place; returns whether anything changed.

    Nothing may be appended meanwhile. Raises what `read` raises.
    """
    place = _place(recording_id)
    if not length:
        return False
    try:
        before = place.read_bytes()[:length]
        after = b"".join(resealed(line, purpose=_PURPOSE) + b"\n" for line in before.splitlines())
        if after == before:
            return False
        new = place.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(after)
            os.fsync(file.fileno())
        new.replace(place)
    except OSError as error:
        raise Unavailable(f"the recording's file {place} cannot be rewritten: {error}") from error
    return True


def delete_others(kept: Collection[int]) -> int:
    """Delete the files of all recordings but `kept`, and return their number."""
    deleted = 0
    for place in settings.RECORDINGS_FOLDER.glob(f"*{_SUFFIX}"):
        if place.stem.isdecimal() and int(place.stem) not in kept:
            place.unlink(missing_ok=True)
            deleted += 1
    return deleted


def _place(recording_id: int) -> Path:
    folder: Path = settings.RECORDINGS_FOLDER
    return folder / f"{recording_id}{_SUFFIX}"
