"""Query parameters of the registry: the filter of imports, and the metadata of a pushed version."""

from collections.abc import Iterable

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from common.errors import InvalidInput
from common.http.filters import Filter
from registry.domain.import_lifecycle import ImportStatus
from registry.domain.lineage import Lineage
from registry.domain.version_metadata import Particulars

_PAIRS = {"type": "array", "items": {"type": "string"}}
IMPORT_STATUS = Filter("status", "status", "Filter by status.", choices=tuple(ImportStatus))
PARTICULARS = [
    OpenApiParameter("description", str, description="Description of the version, in Markdown."),
    OpenApiParameter("tag", _PAIRS, description="Tag as `key=value`; repeat for several tags."),
    OpenApiParameter("source_commit", str, description="Commit of the training code."),
    OpenApiParameter("run_url", str, description="URL of the CI run that produced the files."),
    OpenApiParameter("data_reference", str, description="Reference to the training data."),
    OpenApiParameter(
        "parameter", _PAIRS, description="Free parameter as `name=value`, such as a hyperparameter; repeat for several."
    ),
    OpenApiParameter(
        "compatible_with",
        str,
        description="Version as `@alias` or a number: the new version is rejected unless it is compatible with that "
        "version's clients. The model's setting if absent; empty for no check.",
    ),
]


def particulars_of(query: QueryDict) -> Particulars:
    """Return the metadata of a new version; rejects unknown parameters, since they may be misspelt."""
    known = {parameter.name for parameter in PARTICULARS} | {"filename"}
    if unknown := sorted(set(query) - known):
        raise InvalidInput(
            f"{unknown[0][:80]!r} is not known here; known are {', '.join(sorted(known))}", field=unknown[0][:80]
        )
    found = Particulars(
        lineage=Lineage(
            source_commit=query.get("source_commit", ""),
            run_url=query.get("run_url", ""),
            data_reference=query.get("data_reference", ""),
            parameters=_pairs("parameter", query.getlist("parameter")),
        ),
        tags=_pairs("tag", query.getlist("tag")),
        description=query.get("description", ""),
        compatible_with=query.get("compatible_with"),
    )
    found.check()
    return found


def _pairs(name: str, texts: Iterable[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign:
            raise InvalidInput(f"{name} is {text[:80]!r}; expected key=value", field=name)
        if key in pairs:
            raise InvalidInput(f"{name} {key[:80]!r} is given twice", field=name)
        pairs[key] = value
    return pairs
