"""Cursor pagination of every list in the API: `{"next": url or null, "results": [...]}`.

A page begins after the last item of the one before, by a unique column, so that rows which come or go in between
neither repeat nor hide others. A view names the column in `ordering` (`name`, `-number`); `-id` is newest first.
"""

import base64
import binascii
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Field, Model
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
        """Return one page of `queryset` as the request's `cursor` and `limit` ask for it."""
        ordering = getattr(view, "ordering", None) or self.ordering
        column = ordering.removeprefix("-")
        limit = self._limit(request)
        if (after := request.query_params.get("cursor")) is not None:
            comparison = "lt" if ordering.startswith("-") else "gt"
            queryset = queryset.filter(**{f"{column}__{comparison}": _decoded(after, queryset.model, column)})
        rows = list(queryset.order_by(ordering)[: limit + 1])
        page = rows[:limit]
        self._next: str | None = None
        if len(rows) > limit:
            cursor = base64.urlsafe_b64encode(str(getattr(page[-1], column)).encode()).decode()
            self._next = replace_query_param(request.build_absolute_uri(), "cursor", cursor)
        return page

    def get_paginated_response(self, data: Any) -> Response:
        """Return the answer for one page of serialized rows."""
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

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return the OpenAPI form of `cursor` and `limit`."""
        return [
            {"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}},
            {
                "name": "limit",
                "in": "query",
                "required": False,
                "description": f"Rows per page; more than {self.max_limit} gives {self.max_limit}.",
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


def _decoded(cursor: str, model: type[Model], column: str) -> Any:
    try:
        text = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
        if "\0" in text:
            raise UnicodeError("a zero byte, which PostgreSQL keeps in no text")
        field: Field[Any, Any] = model._meta.get_field(column)  # type: ignore[assignment]  # lists go by own columns
        return field.to_python(text)
    except (UnicodeError, binascii.Error, ValidationError) as error:
        raise InvalidInput(
            "cursor is not one that this list gave out; start again without it", field="cursor"
        ) from error
