"""The models of a service, for its replicas; and a model that is not served yet, for the job that asks about it."""

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

_RANGE = OpenApiParameter("Range", str, OpenApiParameter.HEADER, description="One range of bytes that has a beginning.")
_BYTES = {(status, "application/octet-stream"): OpenApiTypes.BINARY for status in (200, 206)}


class WorkloadArtifactView(WorkloadView):
    """A model that a revision of the caller's service has, or that the caller asks about."""

    permission_classes = (FetchesModels,)

    @extend_schema(responses={**_BYTES, 416: None}, parameters=[_RANGE])
    def get(self, request: Request, cluster: str, digest: str) -> HttpResponse | Download:
        """Return the files: `model.onnx` as it is, or all as a tar archive, as Content-Disposition says."""
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
        """Let clients accept what they want: the bytes have one form, and errors are JSON."""
        return super().perform_content_negotiation(request, force=True)
