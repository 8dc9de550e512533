"""Uploads of recorded requests and responses by replicas."""

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.services.connection import driver_of
from common.errors import InvalidInput, TooLarge
from common.http.asgi import allow_body
from deployments.api.workloads.access import WorkloadView, workload_of

MEDIA_TYPE = "application/cloudevents-batch+json"
MAX_BYTES = 32 << 20


class WorkloadExchangesView(WorkloadView):
    """Recorded requests with their responses. Idempotent: the same body is stored once."""

    @extend_schema(request={(MEDIA_TYPE): OpenApiTypes.BINARY}, responses={204: None})
    def post(self, request: Request, cluster: str) -> Response:  # noqa: ARG002
        """Store a JSON array of CloudEvents of the caller's revision. Fails with 409 if it is not being recorded."""
        driver_of(self.service.cluster).keep(workload_of(request), _body(request))
        return Response(status=204)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Ignore `Accept`: only errors have a body."""
        return super().perform_content_negotiation(request, force=True)


def _body(request: Request) -> bytes:
    """Return the body as received; it is parsed as JSON only on use."""
    plain = request._request
    if plain.content_type != MEDIA_TYPE:
        raise UnsupportedMediaType(
            plain.content_type or "",
            detail=f"the content type is {(plain.content_type or 'absent')[:100]!r}; send events as {MEDIA_TYPE}",
        )
    allow_body(plain, MAX_BYTES)
    try:
        content = plain.read()
    except RequestDataTooBig as error:
        raise TooLarge(f"the events have more than the {MAX_BYTES} bytes that are allowed") from error
    except UnreadablePostError as error:
        raise InvalidInput(f"the body could not be read to its end: {error}") from error
    if content[:1] != b"[":
        raise InvalidInput("the body is no JSON array of events")
    return content
