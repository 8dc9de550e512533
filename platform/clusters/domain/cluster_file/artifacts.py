"""`artifacts` of a cluster file: the source of pods' model files. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.document import Document
from common.errors import InvalidInput
from common.quantities import parse_memory
from integrations.clusters.kubernetes.options import ModelCache, ModelSource


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Source of pods' model files; the fields are those of the driver's options."""

    models_from: ModelSource
    artifacts_claim: str = ""
    artifacts_root: str = ""
    model_cache: ModelCache | None = None
    origin_secret: str = ""
    service_account_annotations: Mapping[str, str] = field(default_factory=dict)


def parse_artifacts(document: Document, *, control_plane_url: str) -> Artifacts:
    """Return the file's `artifacts`; raises InvalidInput with the name of the field at fault."""
    source = document.choice("from", ModelSource, ModelSource.CLAIM)
    unsaid = None if source is ModelSource.CLAIM else ""
    result = Artifacts(
        models_from=source,
        artifacts_claim=document.text("claim", default=unsaid),
        artifacts_root=document.text("root", default=unsaid),
        model_cache=_cache(document.optional("cache")),
        origin_secret=document.text("originSecret", default=""),
        service_account_annotations=_annotations(document, "serviceAccountAnnotations"),
    )
    document.refuse_unknown()
    if source is ModelSource.CLAIM and result.model_cache is not None:
        raise _unused(document, "cache", "registry or origin")
    if source is not ModelSource.ORIGIN and result.origin_secret:
        raise _unused(document, "originSecret", "origin")
    if source is not ModelSource.CLAIM and not control_plane_url:
        raise InvalidInput(
            f"{document.path('from')} is {source}, but nothing says where pods reach the control plane; give "
            "controlPlaneUrl",
            field="controlPlaneUrl",
        )
    return result


def _cache(document: Document | None) -> ModelCache | None:
    if document is None:
        return None
    claim, folder = document.text("claim", default=""), document.text("nodeFolder", default="")
    size = parse_memory(document.raw("size"), document.path("size"))
    document.refuse_unknown()
    if bool(claim) == bool(folder) or (folder and not folder.startswith("/")):
        raise InvalidInput(
            f"{document.path('')[:-1]} has to say one of claim and nodeFolder, the path of a folder of each node",
            field=document.path("")[:-1],
        )
    return ModelCache(claim, folder, size)


def _annotations(document: Document, name: str) -> Mapping[str, str]:
    value: Any = document.raw(name, {})
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise InvalidInput(f"{document.path(name)} is no object of texts", field=document.path(name))
    return dict(value)


def _unused(document: Document, name: str, source: str) -> InvalidInput:
    return InvalidInput(
        f"{document.path(name)} is for {document.path('from')}: {source}; leave it out", field=document.path(name)
    )
