"""Artifact store of this installation, and garbage collection of files without a version.

Deleting a version leaves its files, and an upload that breaks before its version is registered leaves its own. Both are
deleted after the time in the settings, at least an hour; an upload that is being registered, or is sent again, stays.
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


def store(*, most_bytes: int | None = None) -> ArtifactStore:
    """Return the store of uploads, which takes at most `most_bytes` where that is less than usual."""
    usual = settings.MAX_ARTIFACT_BYTES
    return ArtifactStore(
        settings.ARTIFACTS_FOLDER,
        max_bytes=usual if most_bytes is None else min(usual, most_bytes),
        max_files=settings.MAX_ARTIFACT_FILES,
    )


def labels_of(version: ModelVersion) -> Labels:
    """Return the class labels of a version's outputs; empty where its files have none."""
    return labels_in(store().path_of(version.digest))


def store_folder(folder: Path, *, owner: str) -> StoredArtifact:
    """Store a model's local folder; raises what `ArtifactStore.put_folder` raises."""
    return store().put_folder(_members(folder), owner=owner)


@dataclass(frozen=True, slots=True)
class UnusedArtifact:
    """Files without a version; `is_settled` where they were stored long enough ago to be deleted."""

    digest: str
    size_bytes: int
    is_settled: bool


def unused(*, now: datetime) -> list[UnusedArtifact]:
    """Return the artifacts without a version, by digest."""
    files = store()
    settled = set(files.stored_before((now - settings.RETAIN_UNUSED_ARTIFACTS).timestamp()))
    there = {*settled, *files.stored_before(math.inf)}
    digests = sorted(there - set(ModelVersion.objects.values_list("digest", flat=True)))
    return [UnusedArtifact(digest, files.size_of(digest), digest in settled) for digest in digests]


def delete_unused(*, now: datetime) -> list[UnusedArtifact]:
    """Delete the settled artifacts without a version, and return them."""
    files = store()
    found = [each for each in unused(now=now) if each.is_settled]
    for each in found:
        files.delete(each.digest)
    return found


def _members(folder: Path) -> Iterator[Member]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as content:
            yield Member(path.relative_to(folder).as_posix(), content)
