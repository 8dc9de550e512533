"""Requests of trials, for the pods that answer them."""

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
    """A trial's request, for the pod that answers it."""

    permission_classes = (IsJob,)

    @extend_schema(responses={(200, _JSON): OpenApiTypes.OBJECT})
    def get(self, request: Request, cluster: str, request_id: uuid.UUID) -> HttpResponse:
        """Return the body of the V2 inference request. Fails with 404 if the trial no longer waits for a response."""
        caller = caller_of(request)
        assert isinstance(caller, JobIdentity)  # noqa: S101 - see `IsJob`
        text = job_request(cluster=cluster, identity=caller, request_id=request_id)
        return HttpResponse(text, content_type=_JSON)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Ignore `Accept`: the request has one format, and errors are JSON."""
        return super().perform_content_negotiation(request, force=True)
