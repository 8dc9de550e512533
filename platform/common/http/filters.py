"""Filters and orderings of lists in the API: a view declares them; other parameters are rejected by name.

    class AuditListView(ListAPIView):
        filters = (Filter("action", "action", "Filter by action, such as `policy.apply`."),)
        orderings = ("-id", "id")

`common.http.pagination` orders and pages the filtered rows; both describe themselves in the OpenAPI document.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NoReturn

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from common.errors import InvalidInput

_PAGING = ("cursor", "limit")
_MAX_TEXT = 300
_MAX_INTEGER = 2**31 - 1


class Kind(Enum):
    """Types of filter values, by their OpenAPI schema."""

    TEXT = "text"
    INTEGER = "integer"
    MOMENT = "moment"


_SCHEMAS: Mapping[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": "string", "minLength": 1, "maxLength": _MAX_TEXT},
    Kind.INTEGER: {"type": "integer", "minimum": 0, "maximum": _MAX_INTEGER},
    Kind.MOMENT: {"type": "string", "format": "date-time"},
}


@dataclass(frozen=True, slots=True)
class Filter:
    """One query parameter that narrows a list.

    Attributes:
        lookup: Django's lookup, such as `at__gte`; alternatives are separated by `|`.
        choices: the allowed values; any text where empty.
        repeatable: whether the parameter may be given several times, all of which must hold.
    """

    name: str
    lookup: str
    description: str
    kind: Kind = Kind.TEXT
    choices: tuple[str, ...] = ()
    repeatable: bool = False

    def condition(self, text: str) -> Q:
        """Return the condition for the parameter's value; raises InvalidInput."""
        value = self._value(text)
        condition = Q()
        for lookup in self.lookup.split("|"):
            condition |= Q(**{lookup: value})
        return condition

    def schema(self) -> dict[str, Any]:
        """Return the OpenAPI form of the parameter."""
        schema = {"type": "string", "enum": list(self.choices)} if self.choices else _SCHEMAS[self.kind]
        return {
            "name": self.name,
            "in": "query",
            "required": False,
            "description": self.description,
            "schema": {"type": "array", "items": schema} if self.repeatable else schema,
        }

    def _value(self, text: str) -> object:
        if self.choices:
            if text not in self.choices:
                self._refuse(text, " or ".join(self.choices))
        elif self.kind is Kind.INTEGER:
            if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MAX_INTEGER):
                self._refuse(text, f"a whole number from 0 to {_MAX_INTEGER}")
            return int(text)
        elif self.kind is Kind.MOMENT:
            return self._moment(text)
        elif not text or len(text) > _MAX_TEXT or "\0" in text:
            self._refuse(text, f"1 to {_MAX_TEXT} characters")
        return text

    def _moment(self, text: str) -> datetime:
        try:
            # An unescaped plus sign arrives as a space.
            moment = parse_datetime(text.replace(" ", "+") if "T" in text else text)
            if moment is None:
                raise ValueError("not the form of a moment")
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self._refuse(text, "a moment such as 2026-01-31T12:00:00Z")

    def _refuse(self, text: str, expected: str) -> NoReturn:
        raise InvalidInput(f"{self.name} is {text[:80]!r}; expected {expected}", field=self.name)


class ListFilters(BaseFilterBackend):
    """Applies the view's `filters`; rejects unknown parameters."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """Return the rows that fit all parameters."""
        filters = {one.name: one for one in getattr(view, "filters", ())}
        for name, values in request.query_params.lists():
            if name in filters:
                if len(values) > 1 and not filters[name].repeatable:
                    raise InvalidInput(f"{name} is given {len(values)} times; give it once", field=name)
                queryset = queryset.filter(*(filters[name].condition(value) for value in values))
            elif name != "ordering" and name not in _PAGING:
                known = ", ".join([*filters, "ordering", *_PAGING])
                raise InvalidInput(f"{name[:80]!r} is no parameter of this list; it has {known}", field=name[:80])
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the OpenAPI form of the filters."""
        return [one.schema() for one in getattr(view, "filters", ())]
