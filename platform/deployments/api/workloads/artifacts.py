"""Model downloads: a service's models for its replicas, and a job's model for its pod."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from common.http.downloads import Asked, Download, download
from deployments.api.workloads.access import FetchesModels, WorkloadView, caller_of
from deployments.selectors import job_artifact, workload_artifact
from integrations.artifacts.stream import open_stream
from integrations.clusters.base import JobIdentity
from registry.storage import store

_RANGE = OpenApiParameter("Range", str, OpenApiParameter.HEADER, description="A single byte range with a start.")
_BYTES = {(status, "application/octet-stream"): OpenApiTypes.BINARY for status in (200, 206)}


class WorkloadArtifactView(WorkloadView):
    """A model of a revision of the caller's service, or of the caller's job."""

    permission_classes = (FetchesModels,)

    @extend_schema(responses={**_BYTES, 416: None}, parameters=[_RANGE])
    def get(self, request: Request, cluster: str, digest: str) -> HttpResponse | Download:
        """Download the model: `model.onnx`, or a tar archive of all files, as Content-Disposition states."""
        caller = caller_of(request)
        if isinstance(caller, JobIdentity):
            job_artifact(cluster=cluster, identity=caller, digest=digest)
        else:
            workload_artifact(service=self.service, digest=digest)
        stream = open_stream(store().path_of(digest), keeps_names=True)
        return download(
            stream.pieces,
            Asked.of(request.headers),
            filename=f"model{stream.suffix}",
            size_bytes=stream.size_bytes,
            digest=digest,
        )

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Ignore `Accept`: the file has one format, and errors are JSON."""
        return super().perform_content_negotiation(request, force=True)
