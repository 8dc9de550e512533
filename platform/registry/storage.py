"""The artifact store of this installation, and the files in it that no version has.

Deleting a version leaves its files, and an upload that dies before its version is registered leaves its own. Both go
when they have been left for as long as the settings say, at least an hour; an upload that is just being registered, or
is sent again, is not left.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from integrations.artifacts.archives import Member
from integrations.artifacts.store import ArtifactStore, StoredArtifact
from integrations.v2.labels import Labels, labels_in
from registry.models import ModelVersion


def store() -> ArtifactStore:
    """Return the store that uploads go to."""
    return ArtifactStore(
        settings.ARTIFACTS_FOLDER, max_bytes=settings.MAX_ARTIFACT_BYTES, max_files=settings.MAX_ARTIFACT_FILES
    )


def labels_of(version: ModelVersion) -> Labels:
    """Return the labels of the classes that a version's outputs give; empty where its files have none."""
    return labels_in(store().path_of(version.digest))


def store_folder(folder: Path, *, owner: str) -> StoredArtifact:
    """Store a model's folder of this machine; raises what `ArtifactStore.put_folder` raises."""
    return store().put_folder(_members(folder), owner=owner)


@dataclass(frozen=True, slots=True)
class UnusedArtifact:
    """Files that no version has; `is_settled` where they were stored long enough ago to be deleted."""

    digest: str
    size_bytes: int
    is_settled: bool


def unused(*, now: datetime) -> list[UnusedArtifact]:
    """Return the artifacts that no version has, by digest."""
    files = store()
    settled = set(files.stored_before((now - settings.RETAIN_UNUSED_ARTIFACTS).timestamp()))
    there = {*settled, *files.stored_before(math.inf)}
    digests = sorted(there - set(ModelVersion.objects.values_list("digest", flat=True)))
    return [UnusedArtifact(digest, files.size_of(digest), digest in settled) for digest in digests]


def delete_unused(*, now: datetime) -> list[UnusedArtifact]:
    """Delete the artifacts that no version has, those that are settled, and return them."""
    files = store()
    found = [each for each in unused(now=now) if each.is_settled]
    for each in found:
        files.delete(each.digest)
    return found


def _members(folder: Path) -> Iterator[Member]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as content:
            yield Member(path.relative_to(folder).as_posix(), content)
