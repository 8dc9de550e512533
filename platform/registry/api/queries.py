"""What the query of a registry address says: the filter of imports, and the particulars of a version that is pushed."""

from collections.abc import Iterable

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from common.errors import InvalidInput
from common.http.filters import Filter
from registry.domain.import_lifecycle import ImportStatus
from registry.domain.lineage import Lineage
from registry.domain.version_metadata import Particulars

_PAIRS = {"type": "array", "items": {"type": "string"}}
IMPORT_STATUS = Filter("status", "status", "Only imports with this status.", choices=tuple(ImportStatus))
PARTICULARS = [
    OpenApiParameter("description", str, description="Markdown."),
    OpenApiParameter("tag", _PAIRS, description="`key=value`, as often as there are tags."),
    OpenApiParameter("source_commit", str, description="The commit of the training code."),
    OpenApiParameter("run_url", str, description="The CI run that made the files."),
    OpenApiParameter("data_reference", str, description="What the model was trained on."),
    OpenApiParameter("parameter", _PAIRS, description="`name=value`, free, such as hyperparameters."),
    OpenApiParameter(
        "compatible_with",
        str,
        description="`@alias` or a number: the version is rejected unless that one's clients can go on with it. "
        "Without it the model's setting counts; empty asks for no check.",
    ),
]


def particulars_of(query: QueryDict) -> Particulars:
    """Return what the query says of a new version; a name that nobody reads is refused, for it may be misspelt."""
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
