"""Images as versions: the version of a service's model that represents image or program of its custom predictor.

Such a version has a number, a digest and its author as any has, so that rollouts, approvals and records are the same.
It has no files: what reads those refuses it by `check_has_files`.
"""

from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict
from common.images import parse_image
from registry.domain.lineage import Lineage
from registry.domain.version_lifecycle import Status
from registry.models import IMAGE_PLATFORM, ModelVersion, RegisteredModel
from registry.services.model_rows import row_of

_LONGEST = 255


def check_has_files(version: ModelVersion) -> None:
    """Raise Conflict for a version that represents an image."""
    if version.is_image:
        raise Conflict(
            f"{version} is the image of a custom predictor and has no model files; take a version of a model, or name "
            "the image in spec.predictor.containers"
        )


def image_version(*, model: str, image: str, now: datetime, actor: str, what: str = "Image") -> ModelVersion:
    """Return the model's version of an image, which has a digest; one that is new is not saved yet (`image_add`).

    Args:
        image: its name, or the record of a program.
        what: begins the description of a new version.
    """
    digest = parse_image(image).digest
    versions = ModelVersion.objects.select_related("model")
    known = versions.filter(model__name=model, digest=digest, platform=IMAGE_PLATFORM).first()
    if known is not None:
        return known
    owner = RegisteredModel.objects.filter(name=model).first() or RegisteredModel(name=model)
    return ModelVersion(
        model=owner,
        number=owner.latest_number + 1,
        digest=digest,
        artifact_uri="",
        size_bytes=0,
        source_name=image.partition("@")[0].rpartition("/")[2][:_LONGEST],
        description=f"{what} {image}",
        lineage=Lineage().as_json(),
        platform=IMAGE_PLATFORM,
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
