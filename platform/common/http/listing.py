"""Base view of paginated lists."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.generics import GenericAPIView
from rest_framework.response import Response
from rest_framework.serializers import Serializer

M = TypeVar("M", bound=Model)


class ListView(GenericAPIView[Any]):
    """A view whose GET returns one page of rows; `shape` converts rows to values for serialization."""

    ordering: ClassVar[str] = "-id"

    def page(
        self,
        rows: QuerySet[M],
        shape: Callable[[list[M]], Iterable[Any]],
        form: type[Serializer[Any]],
    ) -> Response:
        values = shape(self.paginate_queryset(self.filter_queryset(rows)) or [])
        return self.get_paginated_response(form(list(values), many=True).data)
