"""How the audit log is looked through: its filters, and an entry's before and after as the fields that differ."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q

from common.filters import Filter, Kind


class _ByUser(Filter):
    """Entries of a user, with whichever token; `fairlead` is the platform itself."""

    def condition(self, text: str) -> Q:
        """Return the condition for the user's name."""
        super().condition(text)
        return Q(actor=text) | Q(actor__startswith=f"{text} (token ")


class _Under(Filter):
    """Entries of an object and of what is under it."""

    def condition(self, text: str) -> Q:
        """Return the condition for the object's path."""
        super().condition(text)
        path = text.strip("/")
        return Q(target=path) | Q(target__startswith=f"{path}/")


FILTERS = (
    Filter("actor", "actor", "Who, as the log has it: `alice (token ci)`, or `fairlead` for the platform itself."),
    _ByUser("user", "actor", "Who, with whichever token: `alice`, or `fairlead` for the platform itself."),
    Filter("action", "action", "What, such as `policy.apply`."),
    Filter("target", "target", "The object's path in the API, such as `models/digits/versions/2`."),
    _Under("under", "target", "An object and what is under it, such as `models/digits`."),
    Filter("target_prefix", "target__startswith", "The beginning of that path, such as `models/digits/`."),
    Filter("request_id", "request_id", "The request that did it."),
    Filter("since", "at__gte", "Only entries from this moment on.", Kind.MOMENT),
    Filter("until", "at__lt", "Only entries before this moment.", Kind.MOMENT),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that a change made, changed or took away; None stands for nothing there."""

    path: str
    before: str | None
    after: str | None


def differences(before: object, after: object) -> tuple[Difference, ...]:
    """Return the fields that differ, by their paths such as `document.spec.predictor.minReplicas`."""
    old, new = _flat(before), _flat(after)
    return tuple(
        Difference(path, old.get(path), new.get(path))
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    )


def _flat(value: object, path: str = "") -> dict[str, str]:
    """Return the innermost values by their paths, as text; an empty object or list is a value."""
    if isinstance(value, Mapping) and value:
        parts = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif not path:
        return {}
    else:
        return {path: value if isinstance(value, str) and value else json.dumps(value)}
    return {name: text for at, item in parts for name, text in _flat(item, at).items()}
