"""PromQL queries of a policy file: their placeholders, and the ranges they select. Pure.

`{{revision}}` and its like are filled in for each sample. Only Prometheus can check that the query is meaningful; the
errors refused here are certain: an unknown placeholder, braces that do not match, an unterminated string.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from common.errors import InvalidInput

PLACEHOLDERS = ("namespace", "service", "revision", "version", "stable", "canary", "interval")
LONGEST = 4000

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|`[^`]*`")
_COMMENT = re.compile(r"#[^\n]*")
_RANGE = re.compile(r"\[\s*([0-9a-z]+)\s*(?::[^\]]*)?\]")
_PART = re.compile(r"([0-9]+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
_PAIRS = {")": "(", "]": "[", "}": "{"}


def check_query(query: str, *, field: str) -> str:
    """Return `query`; raise InvalidInput where it is none."""
    if not query.strip() or len(query) > LONGEST:
        raise InvalidInput(f"{field} has {len(query)} characters; expected 1 to {LONGEST}", field=field)
    for name in _PLACEHOLDER.findall(query):
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{{{each}}}}}" for each in PLACEHOLDERS)
            raise InvalidInput(
                f"{field} has the placeholder {{{{{name}}}}}, which is unknown; known are {known}", field=field
            )
    filled = _PLACEHOLDER.sub("x", query)
    if stray := next((braces for braces in ("{{", "}}") if braces in filled), None):
        raise InvalidInput(
            f"{field} has {stray} that belongs to no placeholder; one is written like {{{{revision}}}}", field=field
        )
    if problem := _unbalanced(filled):
        raise InvalidInput(f"{field} {problem}", field=field)
    return query


def is_per_revision(query: str) -> bool:
    """Return whether the query differs between canary and stable."""
    return any(name in ("revision", "version") for name in _PLACEHOLDER.findall(query))


def fill(query: str, values: Mapping[str, str]) -> str:
    """Return the query with its placeholders filled in; all values are names or durations, so nothing is escaped."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], query)


def sample(query: str) -> str:
    """Return the query with sample values, for a syntax check."""
    return fill(query, {**dict.fromkeys(PLACEHOLDERS, "x"), "version": "1", "interval": "1m"})


def look_back(query: str) -> timedelta:
    """Return the longest range that the query selects, `5m` of `rate(x[5m])`; zero where it selects none."""
    ranges = (_seconds(found) for found in _RANGE.findall(_code(_PLACEHOLDER.sub("x", query))))
    return timedelta(seconds=max(ranges, default=0.0))


def _seconds(written: str) -> float:
    parts = _PART.findall(written)
    if "".join(number + unit for number, unit in parts) != written:
        return 0.0
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)


def _code(query: str) -> str:
    """Return the query with empty strings and without comments."""
    whole = re.compile(f"{_TEXT.pattern}|{_COMMENT.pattern}")
    return whole.sub(lambda found: '""' if found[0][0] != "#" else "", query)


def _unbalanced(query: str) -> str:
    """Return the bracket without a counterpart, as a part of a sentence; empty where all are balanced."""
    code = _code(query)
    if quote := next((sign for sign in ("'", '"', "`") if sign in code.replace('""', "")), None):
        return f"has a text that begins with {quote} and does not end"
    open_ones: list[str] = []
    for sign in code:
        if sign in _PAIRS.values():
            open_ones.append(sign)
        elif sign in _PAIRS and (not open_ones or open_ones.pop() != _PAIRS[sign]):
            return f"has a {sign!r} without its {_PAIRS[sign]!r}"
    return f"has a {open_ones[-1]!r} that is never closed" if open_ones else ""
