"""TrainedModel files of KServe: a model that another service's servers load, here a service in a model pool. Pure."""

from collections.abc import Mapping
from typing import Any

from common.files.document import Document, parse_document
from common.files.quantities import parse_memory
from common.identifiers import check_dns_label
from deployments.domain.service_file.file import API_VERSION, KIND
from deployments.domain.service_file.model import FORMATS

TRAINED_MODEL = "TrainedModel"
_API_VERSION = "serving.kserve.io/v1alpha1"


def as_service(document: object) -> object:
    """Return the service file that a TrainedModel file means; another file as it is.

    `spec.inferenceService` names the pool. `spec.model.memory` is checked and left out: models are measured when they
    are loaded.

    Raises:
        InvalidInput: a TrainedModel file is wrong, as `parse_document` says.
    """
    if not isinstance(document, Mapping) or document.get("kind") != TRAINED_MODEL:
        return document
    return parse_document(document, "the file", _service)


def _service(document: Document) -> dict[str, Any]:
    document.text("kind")
    if (found := document.text("apiVersion")) != _API_VERSION:
        document.fault("apiVersion", f"is {found[:60]!r}; expected {_API_VERSION} for a {TRAINED_MODEL}")
    metadata = document.raw("metadata", {})
    spec = document.document("spec")
    pool = spec.text("inferenceService", check=check_dns_label)
    model = spec.document("model")
    framework = model.text("framework").lower()
    if framework not in FORMATS:
        model.fault("framework", f"is {framework[:60]!r}; this release serves {', '.join(FORMATS)}")
    uri = model.text("storageUri")
    model.attempt(0, parse_memory, model.raw("memory", "1Gi"), model.path("memory"))
    for part in (document, spec, model):
        part.refuse_unknown()
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {"predictor": {"pool": pool, "model": {"modelFormat": {"name": framework}, "storageUri": uri}}},
    }
