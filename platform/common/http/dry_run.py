"""Query parameter `dry_run` of endpoints that apply files."""

from typing import Any

from django.utils.module_loading import import_string
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


def plan_form() -> type[Serializer[Any]]:
    """Return the form of a plan, which belongs to the room of services: named as text, as foreign keys upward are."""
    found: type[Serializer[Any]] = import_string("deployments.api.serializers.PlanSerializer")
    return found


def or_plan(form: type[Serializer[Any]], name: str) -> PolymorphicProxySerializer:
    """Return the OpenAPI schema of a response that is a plan for a dry run."""
    return PolymorphicProxySerializer(
        component_name=name, serializers=lambda: [form, plan_form()], resource_type_field_name=None
    )
