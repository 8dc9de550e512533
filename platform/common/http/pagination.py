"""Cursor pagination of every list in the API: `{"next": url or null, "results": [...]}`.

A page begins after the last item of the one before, by a unique column, so that rows which come or go in between
neither repeat nor hide others. A view names the column in `ordering` (`name`, `-number`); `-id` is newest first.
`orderings` lists other orders; where the column is not unique, the row's id decides.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from common.errors import InvalidInput


class CursorPagination(BasePagination):
    """DRF's paginator for all lists; one instance serves one request."""

    default_limit = 50
    max_limit = 200
    ordering = "-id"

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return one page of `queryset` by the request's `cursor` and `limit`."""
        order = _Order.asked(request, view, self.ordering)
        limit = self._limit(request)
        if (after := request.query_params.get("cursor")) is not None:
            queryset = queryset.filter(order.beyond(_decoded(after, queryset.model, order)))
        rows = list(queryset.order_by(*order.columns)[: limit + 1])
        page = rows[:limit]
        self._next: str | None = None
        if len(rows) > limit:
            values = [str(getattr(page[-1], column.removeprefix("-"))) for column in order.columns]
            cursor = base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
            self._next = replace_query_param(request.build_absolute_uri(), "cursor", cursor)
        return page

    def get_paginated_response(self, data: Any) -> Response:
        """Return the response for one page of serialized rows."""
        return Response({"next": self._next, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the OpenAPI form of `get_paginated_response`."""
        return {
            "type": "object",
            "required": ["next", "results"],
            "properties": {
                "next": {"type": "string", "format": "uri", "nullable": True},
                "results": schema,
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the OpenAPI form of `ordering`, `cursor` and `limit`."""
        known = _Order.known(view, self.ordering)
        return [
            {
                "name": "ordering",
                "in": "query",
                "required": False,
                "description": "Field to sort by; a leading hyphen sorts in descending order.",
                "schema": {"type": "string", "enum": list(known), "default": known[0]},
            },
            {"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}},
            {
                "name": "limit",
                "in": "query",
                "required": False,
                "description": f"Rows per page; values above {self.max_limit} are capped at {self.max_limit}.",
                "schema": {"type": "integer", "minimum": 1, "default": self.default_limit},
            },
        ]

    def _limit(self, request: Request) -> int:
        asked = request.query_params.get("limit")
        if asked is None:
            return self.default_limit
        if not (asked.isascii() and asked.isdecimal() and len(asked) <= 9 and int(asked) > 0):
            raise InvalidInput(f"limit is {asked[:40]!r}; expected a whole number of at least 1", field="limit")
        return min(int(asked), self.max_limit)


@dataclass(frozen=True, slots=True)
class _Order:
    """The columns to order by, which together are unique."""

    columns: tuple[str, ...]

    @classmethod
    def known(cls, view: Any, default: str) -> tuple[str, ...]:
        """Return the view's orderings, its default first."""
        own = getattr(view, "ordering", None) or default
        return tuple(dict.fromkeys((own, *getattr(view, "orderings", ()))))

    @classmethod
    def asked(cls, request: Request, view: Any, default: str) -> "_Order":
        """Return the requested order; raises InvalidInput."""
        known = cls.known(view, default)
        wanted = request.query_params.get("ordering", known[0])
        if wanted not in known:
            raise InvalidInput(f"ordering is {wanted[:40]!r}; this list knows {', '.join(known)}", field="ordering")
        # A view's own order is by a column that is unique in its list.
        unique = {known[0].removeprefix("-"), "id"}
        if wanted.removeprefix("-") in unique:
            return cls((wanted,))
        return cls((wanted, "-id" if wanted.startswith("-") else "id"))

    def beyond(self, values: Sequence[Any]) -> Q:
        """Return the condition for rows after the one with `values`."""
        condition, same = Q(), Q()
        for column, value in zip(self.columns, values, strict=True):
            name, comparison = column.removeprefix("-"), "lt" if column.startswith("-") else "gt"
            condition |= same & Q(**{f"{name}__{comparison}": value})
            same &= Q(**{name: value})
        return condition


def _decoded(cursor: str, model: type[Model], order: _Order) -> list[Any]:
    try:
        values = json.loads(base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True))
        if not isinstance(values, list) or len(values) != len(order.columns):
            raise ValueError("not as many values as there are columns")
        return [
            _value(text, model, column.removeprefix("-")) for text, column in zip(values, order.columns, strict=True)
        ]
    except (ValueError, RecursionError, ValidationError) as error:
        raise InvalidInput(
            "cursor is not one that this list gave out; start again without it", field="cursor"
        ) from error


def _value(text: Any, model: type[Model], column: str) -> Any:
    if not isinstance(text, str) or "\0" in text:
        raise ValueError("no text, or one with a zero byte, which PostgreSQL keeps in no text")
    field: Field[Any, Any] = model._meta.get_field(column)  # type: ignore[assignment]  # lists go by own columns
    return field.to_python(text)
