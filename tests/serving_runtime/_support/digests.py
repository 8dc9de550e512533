"""Digests of model files."""

import hashlib
from pathlib import Path

from integrations.artifacts.store import digest_of


def digest_for(files: dict[str, bytes]) -> str:
    return digest_of({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


def left(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
