"""`/api/v1/models/{name}/versions/{number}/builds`: builds of a version in another precision or as a TensorRT plan."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.permissions import actor_of
from accounts.domain.scopes import Scope
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from deployments.api.named_services import named_service
from integrations.clusters.base import ACCELERATOR
from jobs.domain.attempts import Status
from jobs.services import hints
from model_jobs import tasks
from model_jobs.builds.domain.order import BuildOrder, Precision, Target
from model_jobs.builds.selectors import build_get, build_query
from model_jobs.builds.services import build_start, build_stop
from model_jobs.models import Build
from registry.api.access import OfModel
from registry.selectors import model_version_get

_MOST_PROFILES, _MOST_PRODUCTS = 8, 20


class BuildSerializer(serializers.ModelSerializer[Build]):
    """A build; `built`, the number of the resulting version, is null until it is DONE."""

    model = serializers.CharField(source="model_version.model.name")
    version = serializers.IntegerField(source="model_version.number", help_text="Number of the source version.")
    cluster = serializers.CharField(source="cluster.name")
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    order = serializers.DictField()
    progress = serializers.DictField(help_text="Progress; `stage` is the current stage.")
    report = serializers.DictField(
        help_text="Report; `made` names the libraries and the GPU used; empty until the build is DONE."
    )
    built = serializers.SerializerMethodField()

    class Meta:
        model = Build
        fields = [
            "id",
            "model",
            "version",
            "cluster",
            "order",
            "status",
            "reason",
            "progress",
            "report",
            "built",
            "created_at",
            "created_by",
            "finished_at",
        ]
        read_only_fields = fields

    def get_built(self, row: Build) -> int | None:
        """Return the number of the resulting version, or of an existing version with the same files."""
        return None if row.version is None else row.version.number


class BuildStartSerializer(RequestSerializer[Build]):
    """A build to start: target, precision and GPU."""

    target = serializers.ChoiceField(choices=[each.value for each in Target], required=False)
    precision = serializers.ChoiceField(choices=[each.value for each in Precision], required=False)
    profiles = serializers.ListField(
        child=serializers.CharField(max_length=1000),
        required=False,
        max_length=_MOST_PROFILES,
        help_text="Optimization profiles of a plan, each as shapes such as x:1x128:8x128:32x128.",
    )
    optimization_level = serializers.IntegerField(required=False, min_value=0, max_value=5)
    service = serializers.CharField(
        required=False, max_length=200, help_text="Service whose GPU or slice the plan is built on, as NAMESPACE/NAME."
    )
    accelerator = serializers.RegexField(
        f"^{ACCELERATOR}$",
        required=False,
        max_length=100,
        help_text="GPU or slice that the plan is built on, such as nvidia.com/mig-1g.10gb.",
    )
    products = serializers.ListField(
        child=serializers.RegexField(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"),
        required=False,
        max_length=_MOST_PRODUCTS,
        help_text="GPU products allowed for the node, by its label nvidia.com/gpu.product; any if empty or absent.",
    )
    timeout_s = serializers.IntegerField(required=False, min_value=30, max_value=86400)


class BuildListView(OfModel, ListView):
    """Lists builds of a version."""

    @extend_schema(responses=BuildSerializer(many=True))
    def get(self, _request: Request, name: str, number: int) -> Response:
        """List builds of the version, newest first."""
        model_version_get(model=name, number=number)
        return self.page(build_query(model=name, number=number), list, BuildSerializer)

    @idempotent()
    @extend_schema(request=BuildStartSerializer, responses={202: BuildSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Build a version of an ONNX model in FP16 or calibrated INT8, or as a TensorRT plan.

        The build runs as a job where models are checked; a plan's, on the requested GPU or slice. The new version is
        checked like a pushed one. INT8 takes its ranges from `calibration.npz` in the version's folder.
        """
        asked = BuildStartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said: dict[str, Any] = dict(asked.validated_data)
        row = build_start(
            model=name,
            number=number,
            service=named_service(request, said.pop("service"), Scope.READ) if "service" in said else None,
            order=BuildOrder.from_json(said),
            actor=actor_of(request),
            now=timezone.now(),
        )
        transaction.on_commit(lambda: hints.send(tasks.build, row.pk))  # with an idempotency key one is open here
        return Response(BuildSerializer(row).data, status=202)


class BuildDetailView(OfModel, APIView):
    """One build."""

    @extend_schema(responses=BuildSerializer)
    def get(self, _request: Request, name: str, number: int, build_id: int) -> Response:
        """Return the build with its progress and, once DONE, the resulting version."""
        return Response(BuildSerializer(build_get(model=name, number=number, build_id=build_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int, build_id: int) -> Response:
        """Stop the build, which becomes FAILED. Fails with 409 if it has ended."""
        now = timezone.now()
        build_stop(model=name, number=number, build_id=build_id, actor=actor_of(request), now=now)
        return Response(status=204)
