"""Disk usage of model files: by model, of unreferenced versions, and of artifacts without a version."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db.models import Count, Max, Q, Sum

from registry import hooks
from registry.models import ModelVersion
from registry.storage import UnusedArtifact, store, unused

MODELS_SHOWN, VERSIONS_SHOWN = 50, 50
_LOOKED_AT = 500
"""Limit of the largest versions without an alias that are checked for references."""


@dataclass(frozen=True, slots=True)
class ModelSpace:
    """Disk usage of all versions of a model."""

    name: str
    versions: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class VersionSpace:
    """A version that no alias, service file or running revision references: it can be deleted.

    Attributes:
        remembered_by: services whose failed or retired revisions ran it, which drop them with it.
    """

    model: str
    number: int
    size_bytes: int
    status: str
    created_at: datetime
    remembered_by: int


@dataclass(frozen=True, slots=True)
class StoreSpace:
    """The store as a whole.

    Attributes:
        size_bytes: of all artifacts of versions, each counted once.
        unused: artifacts without a version, largest first.
        free_bytes, total_bytes: of its disk.
    """

    size_bytes: int
    unused: tuple[UnusedArtifact, ...]
    free_bytes: int
    total_bytes: int

    @property
    def unused_bytes(self) -> int:
        """Return the size of the artifacts without a version."""
        return sum(each.size_bytes for each in self.unused)

    @property
    def collectable(self) -> tuple[UnusedArtifact, ...]:
        """Return those that can be deleted now; others were stored too recently."""
        return tuple(each for each in self.unused if each.is_settled)

    @property
    def collectable_bytes(self) -> int:
        """Return the bytes free after deleting them."""
        return sum(each.size_bytes for each in self.collectable)


def model_spaces(seen: Q) -> Sequence[ModelSpace]:
    """Return the models with the largest disk usage, largest first.

    Args:
        seen: which versions the caller may see.
    """
    rows = ModelVersion.objects.filter(seen).values("model__name")
    rows = rows.annotate(versions=Count("pk"), size=Sum("size_bytes")).order_by("-size", "model__name")
    return [ModelSpace(row["model__name"], row["versions"], row["size"]) for row in rows[:MODELS_SHOWN]]


def unnamed_versions(seen: Q) -> Sequence[VersionSpace]:
    """Return the largest unreferenced versions, largest first.

    Args:
        seen: which versions the caller may see.
    """
    rows = ModelVersion.objects.filter(seen, aliases=None).select_related("model").order_by("-size_bytes", "-pk")
    found = list(rows[:_LOOKED_AT])
    uses = hooks.uses_of([row.pk for row in found])
    named = {use.version_id for use in uses if not use.is_history}
    remembered = {(use.version_id, use.page) for use in uses if use.is_history}
    free = (row for row in found if row.pk not in named)
    return [
        VersionSpace(
            model=row.model.name,
            number=row.number,
            size_bytes=row.size_bytes,
            status=row.status,
            created_at=row.created_at,
            remembered_by=sum(version_id == row.pk for version_id, _ in remembered),
        )
        for row in islice(free, VERSIONS_SHOWN)
    ]


def store_space(*, now: datetime) -> StoreSpace:
    """Return the store's usage, with the collectable artifacts; reads its folder."""
    once = ModelVersion.objects.values("digest").annotate(size=Max("size_bytes"))
    folder = store().folder
    folder.mkdir(parents=True, exist_ok=True)
    disk = shutil.disk_usage(folder)
    return StoreSpace(
        size_bytes=once.aggregate(total=Sum("size"))["total"] or 0,
        unused=tuple(sorted(unused(now=now), key=lambda each: (-each.size_bytes, each.digest))),
        free_bytes=disk.free,
        total_bytes=disk.total,
    )
