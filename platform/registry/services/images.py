"""Versions without files: those that represent image or program of a custom predictor, or a model pool.

Such a version has a number, a digest and its author as any has, so that rollouts, approvals and records are the same.
It has no files: what reads those refuses it by `check_has_files`.
"""

import hashlib
from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict
from common.images import parse_image
from registry.domain.lineage import Lineage
from registry.domain.version_lifecycle import Status
from registry.models import IMAGE_PLATFORM, POOL_PLATFORM, ModelVersion, RegisteredModel
from registry.services.model_rows import row_of

_LONGEST = 255
_NOTHING = f"sha256:{hashlib.sha256().hexdigest()}"
"""Digest of no files."""


def check_has_files(version: ModelVersion) -> None:
    """Raise Conflict for a version that represents an image or a model pool."""
    if version.platform == POOL_PLATFORM:
        raise Conflict(f"{version} is a model pool and has no model files; take a version of a model")
    if version.platform == IMAGE_PLATFORM:
        raise Conflict(
            f"{version} is the image of a custom predictor and has no model files; take a version of a model, or name "
            "the image in spec.predictor.containers"
        )


def pool_version(*, model: str, now: datetime, actor: str) -> ModelVersion:
    """Return the model's version that represents a pool; one that is new is not saved yet (`image_add`)."""
    return _version(model, _NOTHING, POOL_PLATFORM, source="", description="Model pool", now=now, actor=actor)


def image_version(*, model: str, image: str, now: datetime, actor: str, what: str = "Image") -> ModelVersion:
    """Return the model's version of an image, which has a digest; one that is new is not saved yet (`image_add`).

    Args:
        image: its name, or the record of a program.
        what: begins the description of a new version.
    """
    digest, source = parse_image(image).digest, image.partition("@")[0].rpartition("/")[2][:_LONGEST]
    return _version(model, digest, IMAGE_PLATFORM, source=source, description=f"{what} {image}", now=now, actor=actor)


def _version(
    model: str, digest: str, platform: str, *, source: str, description: str, now: datetime, actor: str
) -> ModelVersion:
    versions = ModelVersion.objects.select_related("model")
    known = versions.filter(model__name=model, digest=digest, platform=platform).first()
    if known is not None:
        return known
    owner = RegisteredModel.objects.filter(name=model).first() or RegisteredModel(name=model)
    return ModelVersion(
        model=owner,
        number=owner.latest_number + 1,
        digest=digest,
        artifact_uri="",
        size_bytes=0,
        source_name=source,
        description=description,
        lineage=Lineage().as_json(),
        platform=platform,
        status=Status.READY.value,
        created_at=now,
        created_by=actor,
    )


@transaction.atomic
def image_add(version: ModelVersion, *, now: datetime, actor: str) -> None:
    """Save a new version of an image under the next number of its model; an unknown model is created."""
    owner, _ = row_of(name=version.model.name, now=now, actor=actor)
    owner.latest_number += 1
    owner.save(update_fields=["latest_number"])
    version.model, version.number = owner, owner.latest_number
    version.save()
    audit_record(
        actor=actor,
        action="model_version.register",
        target=f"models/{owner.name}/versions/{version.number}",
        now=now,
        after={"digest": version.digest, "size_bytes": 0, "source_name": version.source_name},
    )
