"""Uploads of job results by pods."""

import uuid
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from deployments.api.workloads.access import IsJob, WorkloadView, caller_of
from integrations.clusters.base import JobIdentity
from jobs.services.pods import check_result, result_take
from registry.api.uploads import MEDIA_TYPE, receive
from registry.storage import store

_ARCHIVE = "made.tar"


class WorkloadResultView(WorkloadView):
    """A job's resulting model folder, as a tar archive. Idempotent: the same content is stored once."""

    permission_classes = (IsJob,)

    @extend_schema(request={(MEDIA_TYPE): OpenApiTypes.BINARY}, responses={204: None})
    def put(self, request: Request, cluster: str, result_id: uuid.UUID) -> Response:
        """Store the job's result. Fails with 404 for another job's result, and with 409 if it is no longer awaited."""
        caller = caller_of(request)
        assert isinstance(caller, JobIdentity)  # noqa: S101 - see `IsJob`
        check_result(cluster=cluster, identity=caller, result_id=result_id)
        artifact = receive(request._request, store(), filename=_ARCHIVE)
        result_take(result_id=result_id, artifact=artifact)
        return Response(status=204)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Ignore `Accept`: only errors have a body."""
        return super().perform_content_negotiation(request, force=True)
