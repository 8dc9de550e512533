"""`artifacts` of a cluster file: the source of pods' model files. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import InvalidInput
from common.files.document import Document
from common.files.quantities import parse_memory
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
    is_claim = source is ModelSource.CLAIM and document.is_sound("from")
    unsaid = None if is_claim else ""
    result = Artifacts(
        models_from=source,
        artifacts_claim=document.text("claim", default=unsaid),
        artifacts_root=document.text("root", default=unsaid),
        model_cache=document.part("cache", _cache),
        origin_secret=document.text("originSecret", default=""),
        service_account_annotations=_annotations(document, "serviceAccountAnnotations"),
    )
    document.refuse_unknown()
    if document.is_sound("from"):
        _check_source(document, result, control_plane_url)
    return result


def _check_source(document: Document, found: Artifacts, control_plane_url: str) -> None:
    if found.models_from is ModelSource.CLAIM and found.model_cache is not None:
        _unused(document, "cache", "registry or origin")
    if found.models_from is not ModelSource.ORIGIN and found.origin_secret:
        _unused(document, "originSecret", "origin")
    if found.models_from is not ModelSource.CLAIM and not control_plane_url:
        what = f"{document.path('from')} is {found.models_from}, but nothing says where pods reach the control plane"
        document.report(InvalidInput(f"{what}; give controlPlaneUrl", field="controlPlaneUrl"))


def _cache(document: Document) -> ModelCache | None:
    claim, folder = document.text("claim", default=""), document.text("nodeFolder", default="")
    size = document.attempt(0, parse_memory, document.raw("size"), document.path("size"))
    document.refuse_unknown()
    if document.is_sound() and (bool(claim) == bool(folder) or (folder and not folder.startswith("/"))):
        raise InvalidInput(
            f"{document.prefix} has to say one of claim and nodeFolder, the path of a folder of each node",
            field=document.prefix,
        )
    return ModelCache(claim, folder, size) if document.is_sound() else None


def _annotations(document: Document, name: str) -> Mapping[str, str]:
    value: Any = document.raw(name, {})
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        document.fault(name, "is no object of texts")
        return {}
    return dict(value)


def _unused(document: Document, name: str, source: str) -> None:
    document.fault(name, f"is for {document.path('from')}: {source}; leave it out")
