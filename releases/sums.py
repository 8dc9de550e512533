"""The file of sums, as `sha256sum` writes and checks it: each file of a release but this one and its signature."""

import re
from collections.abc import Mapping

from releases.errors import ReleaseError

NAME, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
MOST_FILES = 200


def written(sums: Mapping[str, str]) -> bytes:
    """Return the file; SHA-256 in hex by file name."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()


def parsed(content: bytes) -> dict[str, str]:
    """Return SHA-256 in hex by file name; raises ReleaseError where a line or a name is not a release's."""
    try:
        lines = content.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{NAME} is not ASCII: fetch the release again") from error
    if lines.pop() or not lines or len(lines) > MOST_FILES:
        raise ReleaseError(f"{NAME} has to have 1 to {MOST_FILES} whole lines: fetch the release again")
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise ReleaseError(f"line {number} of {NAME} is no SHA-256 and file name: fetch the release again")
        digest, name = parts.groups()
        if not is_file_name(name):
            raise ReleaseError(f"line {number} of {NAME} names {name[:80]!r}, no plain file name: do not use it")
        if name in found or name in (NAME, SIGNATURE):
            raise ReleaseError(f"line {number} of {NAME} names {name}, which it may not name here: do not use it")
        found[name] = digest
    return found


def is_file_name(name: str) -> bool:
    """Return whether a name leads to no other folder, and needs no quotes."""
    return _FILE_NAME.fullmatch(name) is not None
