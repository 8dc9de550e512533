"""Comparison policy in the policy file: the `comparison` of a step's analysis. Pure."""

from collections.abc import Mapping
from dataclasses import fields

from common.errors import InvalidInput
from common.files.document import Document, kind_of
from deployments.domain.comparison.comparison_policy import Terms, Tolerance

_MOST_OUTPUTS = 100
_NAMES = {"abs": "abs", "rel": "rel", "top_k": "topK", "cosine": "cosine"}


def parse_terms(document: Document) -> Terms:
    """Return the terms of a `comparison`; raise InvalidInput with the name of the field at fault."""
    terms = Terms(
        min_pairs=document.integer("minPairs", minimum=1, maximum=100_000_000, default=200),
        min_agreement_percent=document.number("minAgreementPercent", minimum=0, maximum=100, default=99.0),
        top_k=_top_k(document),
        tolerances=_tolerances(document),
        sample_percent=document.number("sample", minimum=0.001, maximum=100, default=100.0),
    )
    document.refuse_unknown()
    return terms


def check_copied(terms: Terms | None, *, is_copied: bool, where: str) -> None:
    """Raise InvalidInput where answers are to be compared at a step that copies no requests."""
    if terms is not None and not is_copied:
        raise InvalidInput(
            f"{where} compares both sides' answers to the same requests, which only a step that copies requests has: "
            "one of a shadow, or of a canary with mirror",
            field=where,
        )


def terms_json(terms: Terms) -> dict[str, object]:
    """Return the `comparison`, defaults filled in; `parse_terms` reads it back to equal terms."""
    return {
        "minPairs": terms.min_pairs,
        "minAgreementPercent": terms.min_agreement_percent,
        "topK": terms.top_k,
        "tolerances": {name: _tolerance_json(tolerance) for name, tolerance in terms.tolerances.items()},
        "sample": terms.sample_percent,
    }


def _top_k(document: Document) -> int | None:
    if document.raw("topK", None) is None:
        return None
    return document.integer("topK", minimum=1, maximum=1000)


def _tolerances(document: Document) -> dict[str, Tolerance | None]:
    value = document.raw("tolerances", {})
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        expected = "expected outputs by name, such as {probabilities: {abs: 0.01}}"
        document.fault("tolerances", f"is {kind_of(value)}; {expected}")
        return {}
    if len(value) > _MOST_OUTPUTS:
        document.fault("tolerances", f"names {len(value)} outputs; at most {_MOST_OUTPUTS} can be named")
        return {}
    outputs = document.or_empty("tolerances")
    return {name: outputs.part(name, _tolerance) for name in value}


def _tolerance(document: Document) -> Tolerance:
    tolerance = Tolerance(
        abs=_optional(document, "abs", 1e300),
        rel=_optional(document, "rel", 2),
        top_k=_top_k(document),
        cosine=_optional(document, "cosine", 1),
    )
    document.refuse_unknown()
    if tolerance == Tolerance() and document.is_sound():
        where = document.prefix
        document.report(
            InvalidInput(
                f"{where} asks nothing; give it abs, rel, topK or cosine, or null to leave the output uncompared",
                field=where,
            )
        )
    return tolerance


def _optional(document: Document, name: str, maximum: float) -> float | None:
    if document.raw(name, None) is None:
        return None
    return document.number(name, minimum=0, maximum=maximum)


def _tolerance_json(tolerance: Tolerance | None) -> dict[str, object] | None:
    if tolerance is None:
        return None
    given = {each.name: getattr(tolerance, each.name) for each in fields(Tolerance)}
    return {_NAMES[name]: value for name, value in given.items() if value is not None}
