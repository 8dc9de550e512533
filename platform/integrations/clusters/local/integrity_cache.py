"""Integrity cache of artifacts: hashes all files once, and again only where a file looks changed.

A seal is a small file with the verified digest of an artifact, and size, time of change and inode of its files at that
time. It lies beside the model repository, so that it outlives the agent and is removed with the revision.
"""

from contextlib import suppress
from pathlib import Path

from common.errors import Conflict, NotFound
from integrations.artifacts.store import digest_of_folder
from integrations.clusters.local.files import BadFileError, read_json, write_json

SCHEMA = "fairlead.seal/v1"


def check_artifact(artifact: Path, digest: str, seal: Path, *, revision: str) -> None:
    """Verify that the files of `artifact` match `digest`, and seal them.

    Raises:
        NotFound: the artifact is gone.
        Conflict: its files are others.
    """
    if not artifact.is_dir():
        raise NotFound(f"the artifact of revision {revision} is not at {artifact}; push the model version again")
    seen = {"schema": SCHEMA, "digest": digest, "files": _looks(artifact)}
    if _sealed(seal) == seen:
        return
    found = digest_of_folder(artifact)
    if found != digest:
        raise Conflict(
            f"the artifact of revision {revision} at {artifact} was changed on disk: expected {digest}, found {found}; "
            "put its files back, or roll out another version"
        )
    with suppress(OSError):  # without it all is hashed again the next time
        write_json(seal, seen)


def _looks(artifact: Path) -> dict[str, list[int]]:
    """Return size, time of change and inode of each file, which the links that repositories make do not change."""
    stats = {path.relative_to(artifact).as_posix(): path.stat() for path in artifact.rglob("*") if path.is_file()}
    return {name: [found.st_size, found.st_mtime_ns, found.st_ino] for name, found in stats.items()}


def _sealed(seal: Path) -> object:
    try:
        return read_json(seal, SCHEMA)
    except (FileNotFoundError, BadFileError):
        return None
