"""The request that the pod of a trial answers."""

import uuid
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from deployments.api.workloads.access import IsJob, WorkloadView, caller_of
from integrations.clusters.base import JobIdentity
from jobs.services.pods import job_request

_JSON = "application/json"


class WorkloadRequestView(WorkloadView):
    """A request, for the one pod that is to answer it."""

    permission_classes = (IsJob,)

    @extend_schema(responses={(200, _JSON): OpenApiTypes.OBJECT})
    def get(self, request: Request, cluster: str, request_id: uuid.UUID) -> HttpResponse:
        """Return the body of a V2 inference request; 404 where it is not waited for any more."""
        caller = caller_of(request)
        assert isinstance(caller, JobIdentity)  # noqa: S101 - see `IsJob`
        text = job_request(cluster=cluster, identity=caller, request_id=request_id)
        return HttpResponse(text, content_type=_JSON)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Let clients accept what they want: the request has one form, and errors are JSON."""
        return super().perform_content_negotiation(request, force=True)
