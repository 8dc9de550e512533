"""Query parameter `dry_run` of endpoints that apply files."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from common.errors import InvalidInput

DRY_RUN = OpenApiParameter(
    "dry_run", bool, description="With `true`, validates the file and returns the plan of changes without applying it."
)


def is_dry_run(request: Request) -> bool:
    """Return whether the request is a dry run; raises InvalidInput."""
    text = request.query_params.get("dry_run", "false")
    if text not in ("true", "false"):
        raise InvalidInput(f"dry_run is {text[:60]!r}; expected true or false", field="dry_run")
    return text == "true"


def or_plan(
    form: type[Serializer[Any]], plan: Callable[[], type[Serializer[Any]]], name: str
) -> PolymorphicProxySerializer:
    """Return the OpenAPI form of an answer that is a plan where it was a dry run.

    Args:
        plan: returns the plan's form, once all applications are loaded.
    """
    return PolymorphicProxySerializer(
        component_name=name, serializers=lambda: [form, plan()], resource_type_field_name=None
    )
