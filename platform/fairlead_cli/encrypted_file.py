"""Encrypted streams: AES-256-GCM in chunks of 64 KiB (the STREAM construction), which finds changes and truncation.

A file is a line that names the format, a random salt, and the chunks. HKDF-SHA256 derives the file's own key from the
operator's key and the salt, so a nonce is a chunk's number and whether it is the last one.
"""

import io
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fairlead_cli.errors import CliError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC = b"fairlead-encrypted/v1\n"
_SALT = 32
_CHUNK = 64 * 1024
_TAG = 16
_SHORTEST_KEY, _LONGEST_KEY = 32, 4096


def read_key(file: Path) -> bytes:
    """Return the key of a key file; raises CliError where it is missing, too short or too long."""
    try:
        with file.open("rb") as opened:
            key = opened.read(_LONGEST_KEY + 1).strip()
    except OSError as error:
        raise CliError(f"the key file {file} cannot be read: {error.strerror}") from error
    return check_key(key, f"the key file {file}")


def check_key(key: bytes, what: str) -> bytes:
    """Return a key; raises CliError, calling it `what`, where it is too short or too long."""
    if not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        raise CliError(
            f"{what} has {len(key)} bytes; a key has {_SHORTEST_KEY} to {_LONGEST_KEY}: make one with "
            "`openssl rand -hex 32`"
        )
    return key


def is_encrypted(file: Path) -> bool:
    """Return whether the file begins as `EncryptingWriter` writes it."""
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


class EncryptingWriter(io.RawIOBase):
    """Encrypts what is written to it; `finish` writes the last chunk, without which the file cannot be read."""

    def __init__(self, stream: IO[bytes], key: bytes) -> None:
        salt = os.urandom(_SALT)
        self._stream = stream
        self._cipher = _cipher(key, salt)
        self._number = 0
        self._waiting = bytearray()
        stream.write(MAGIC + salt)

    def writable(self) -> bool:
        return True

    def write(self, content: object) -> int:
        """Encrypt bytes; a full chunk is kept until it is known not to be the last."""
        data = bytes(content)  # type: ignore[call-overload]
        self._waiting += data
        while len(self._waiting) > _CHUNK:
            self._put(bytes(self._waiting[:_CHUNK]), is_last=False)
            del self._waiting[:_CHUNK]
        return len(data)

    def finish(self) -> None:
        """Write the last chunk."""
        self._put(bytes(self._waiting), is_last=True)

    def _put(self, chunk: bytes, *, is_last: bool) -> None:
        self._stream.write(self._cipher.encrypt(_nonce(self._number, is_last), chunk, MAGIC))
        self._number += 1


class DecryptingReader(io.RawIOBase):
    """Decrypts a stream; each chunk is authenticated before any of it is returned.

    Raises CliError at the first chunk that does not fit: another key, a change, or a missing end.
    """

    def __init__(self, stream: IO[bytes], key: bytes, *, name: str) -> None:
        stream.read(len(MAGIC))
        self._name = name
        self._stream = stream
        self._cipher = _cipher(key, stream.read(_SALT))
        self._number = 0
        self._next = stream.read(_CHUNK + _TAG)
        self._plain = b""
        self._is_done = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, all of the rest for -1; fewer only at the end."""
        parts, missing = [], size
        while missing:
            if not self._plain:
                if self._is_done:
                    break
                self._plain = self._chunk()
            taken = self._plain if missing < 0 else self._plain[:missing]
            self._plain = self._plain[len(taken) :]
            missing -= len(taken) if missing > 0 else 0
            parts.append(taken)
        return b"".join(parts)

    def drain(self) -> None:
        """Read to the end, so that a missing end is found."""
        while self.read(_CHUNK):
            pass

    def _chunk(self) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as below

        chunk, self._next = self._next, self._stream.read(_CHUNK + _TAG)
        self._is_done = not self._next
        try:
            plain = self._cipher.decrypt(_nonce(self._number, self._is_done), chunk, MAGIC)
        except (InvalidTag, ValueError) as error:
            cause = "was changed or is not whole" if self._number else "has another key, or was changed"
            raise CliError(f"{self._name} {cause}; nothing was restored") from error
        self._number += 1
        return plain


def _cipher(key: bytes, salt: bytes) -> "AESGCM":
    # Of the extra `control-plane`, which an installation of the command line alone does not have.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"fairlead encrypted file").derive(key))


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
