"""`artifacts` of a cluster file: the source of pods' model files. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import InvalidInput
from common.files.document import Document
from common.files.quantities import parse_memory
from integrations.clusters.kubernetes.options import ModelCache, ModelSource

_BUCKET = re.compile(r"(s3|gs)://[a-z0-9][a-z0-9._-]{1,220}(/(?!\.{1,2}(?:/|$))[A-Za-z0-9!_.*'()=-]+)*")
"""Names of buckets, and keys without characters that stores advise against."""
_SECRETS = {"originSecret": ModelSource.ORIGIN, "bucketSecret": ModelSource.BUCKET}


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Source of pods' model files; the fields are those of the driver's options."""

    models_from: ModelSource
    artifacts_claim: str = ""
    artifacts_root: str = ""
    model_cache: ModelCache | None = None
    origin_secret: str = ""
    bucket: str = ""
    service_account_annotations: Mapping[str, str] = field(default_factory=dict)


def parse_artifacts(document: Document, *, control_plane_url: str) -> Artifacts:
    """Return the file's `artifacts`; raises InvalidInput with the name of the field at fault."""
    source = document.choice("from", ModelSource, ModelSource.CLAIM)
    is_claim = source is ModelSource.CLAIM and document.is_sound("from")
    unsaid = None if is_claim else ""
    is_bucket = source is ModelSource.BUCKET and document.is_sound("from")
    secrets = {each: document.text(name, default="") for name, each in _SECRETS.items()}
    result = Artifacts(
        models_from=source,
        artifacts_claim=document.text("claim", default=unsaid),
        artifacts_root=document.text("root", default=unsaid),
        model_cache=document.part("cache", _cache),
        origin_secret=secrets.get(source, ""),
        bucket=document.text("bucket", default=None if is_bucket else "").removesuffix("/"),
        service_account_annotations=_annotations(document, "serviceAccountAnnotations"),
    )
    document.refuse_unknown()
    if document.is_sound("from"):
        _check_source(document, result, control_plane_url)
    return result


def _check_source(document: Document, found: Artifacts, control_plane_url: str) -> None:
    if found.models_from is ModelSource.CLAIM and found.model_cache is not None:
        _unused(document, "cache", "registry, origin or bucket")
    for name, source in _SECRETS.items():
        if found.models_from is not source and document.raw(name, ""):
            _unused(document, name, source)
    if found.models_from is not ModelSource.BUCKET and found.bucket:
        _unused(document, "bucket", ModelSource.BUCKET)
    elif found.bucket and not _BUCKET.fullmatch(found.bucket):
        expected = "the address of a bucket, or of a folder in it, such as s3://models/fairlead"
        document.fault("bucket", f"is {found.bucket[:60]!r}; expected {expected}")
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
