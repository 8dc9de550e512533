"""`/api/v1/models/{name}/versions/{number}/tunings`: searches for the fastest configuration within a latency."""

from collections.abc import Mapping
from math import isfinite
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
from clusters.services.connection import driver_of
from common.errors import InvalidInput
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from deployments import selectors, services
from deployments.api.named_services import named_service
from deployments.api.serializers import ServiceSerializer
from jobs.domain.attempts import Status
from jobs.services import hints
from model_jobs import tasks
from model_jobs.models import Tuning
from model_jobs.tunings.domain.order import TuningOrder
from model_jobs.tunings.selectors import tuning_get, tuning_query
from model_jobs.tunings.services import tuned_file, tuning_start, tuning_stop
from registry.api.access import OfModel
from registry.selectors import model_version_get

_MOST_SHAPES, _MOST_DIMS = 20, 8


class TuningSerializer(serializers.ModelSerializer[Tuning]):
    """A tuning; `report` is null until it is DONE; its `chosen` is null if no configuration meets the limit."""

    model = serializers.CharField(source="model_version.model.name")
    version = serializers.IntegerField(source="model_version.number")
    cluster = serializers.CharField(source="cluster.name")
    service = serializers.CharField(allow_null=True, help_text="Service tuned for, as NAMESPACE/NAME; null for none.")
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    order = serializers.DictField()
    progress = serializers.DictField(
        help_text="Progress: `spent` share of the budget (0 to 1), `last` and `best` measurement."
    )
    report = serializers.SerializerMethodField()

    class Meta:
        model = Tuning
        fields = [
            "id",
            "model",
            "version",
            "service",
            "cluster",
            "order",
            "status",
            "reason",
            "progress",
            "report",
            "created_at",
            "created_by",
            "finished_at",
        ]
        read_only_fields = fields

    def get_report(self, row: Tuning) -> dict[str, Any] | None:
        """Return the result of the search."""
        return dict(row.report) if row.status == Status.DONE else None


class TuningDetailSerializer(TuningSerializer):
    """A tuning with its plot."""

    plot = serializers.CharField(
        help_text="Plot of the throughput-latency frontier, as SVG; empty until the tuning is DONE."
    )

    class Meta(TuningSerializer.Meta):
        fields = [*TuningSerializer.Meta.fields, "plot"]
        read_only_fields = fields


class TuningStartSerializer(RequestSerializer[Tuning]):
    """A tuning to start: latency limit, budget and bounds of the search."""

    max_latency_p99_ms = serializers.FloatField(
        min_value=0.001, max_value=3_600_000, help_text="Limit of the 99th percentile latency, in milliseconds."
    )
    budget_s = serializers.IntegerField(
        required=False,
        min_value=5,
        max_value=7200,
        help_text="Time for the search in seconds, without the model's transfer; 300 if absent.",
    )
    service = serializers.CharField(
        required=False,
        max_length=200,
        help_text="Service whose replicas to tune for, as NAMESPACE/NAME; the default cluster if absent.",
    )
    rows = serializers.IntegerField(
        required=False, min_value=1, max_value=10_000, help_text="Rows of a request; 1 if absent."
    )
    shapes = serializers.DictField(
        required=False,
        child=serializers.ListField(
            child=serializers.IntegerField(min_value=1, max_value=1_000_000), min_length=1, max_length=_MOST_DIMS
        ),
        help_text="Shapes of inputs with variable dimensions, by input name, without the batch dimension.",
    )
    largest_request_rows = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=10_000,
        help_text="Rows of clients' largest request; the model's current limit if absent.",
    )
    max_batch_size = serializers.IntegerField(
        required=False, min_value=1, max_value=10_000, help_text="Largest batch size to try; 128 if absent."
    )
    max_instances = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=1024,
        help_text="Largest number of instances to try; the machine's suggestion if absent.",
    )
    max_concurrency = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=4096,
        help_text="Largest number of concurrent requests to try; 256 if absent.",
    )

    def validate_max_latency_p99_ms(self, limit_ms: float) -> float:
        """Reject NaN and infinity."""
        if not isfinite(limit_ms):
            raise serializers.ValidationError("expected a number of milliseconds")
        return limit_ms

    def validate_shapes(self, shapes: Mapping[str, list[int]]) -> Mapping[str, list[int]]:
        """Reject more shapes than a command line can carry."""
        if len(shapes) > _MOST_SHAPES or any(not name or len(name) > 200 for name in shapes):
            raise serializers.ValidationError(f"expected at most {_MOST_SHAPES} names of inputs")
        return shapes


class TuningApplySerializer(RequestSerializer[Tuning]):
    """The service to apply the tuning to."""

    service = serializers.CharField(
        required=False, max_length=200, help_text="Service to configure, as NAMESPACE/NAME; the tuning's if absent."
    )


class TuningListView(OfModel, ListView):
    """Lists tunings of a version."""

    @extend_schema(responses=TuningSerializer(many=True))
    def get(self, _request: Request, name: str, number: int) -> Response:
        """List tunings of the version, newest first."""
        model_version_get(model=name, number=number)
        return self.page(tuning_query(model=name, number=number), list, TuningSerializer)

    @idempotent()
    @extend_schema(request=TuningStartSerializer, responses={202: TuningSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Search for the instances, batch size, queue delay and threads of highest throughput within a latency limit.

        Runs where a service's replicas run, with their resources and secrets, one at a time on a cluster. Loads that
        machine.
        """
        asked = TuningStartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = dict(asked.validated_data)
        service = named_service(request, said.pop("service"), Scope.WRITE) if "service" in said else None
        row = tuning_start(
            model=name,
            number=number,
            service=service,
            order=TuningOrder.from_json(said),
            actor=actor_of(request),
            now=timezone.now(),
        )
        transaction.on_commit(lambda: hints.send(tasks.tune, row.pk))  # with an idempotency key one is open here
        return Response(TuningSerializer(row).data, status=202)


class TuningDetailView(OfModel, APIView):
    """One tuning."""

    @extend_schema(responses=TuningDetailSerializer)
    def get(self, _request: Request, name: str, number: int, tuning_id: int) -> Response:
        """Return the tuning with its progress and, once DONE, its measurements, chosen configuration and plot."""
        row = tuning_get(model=name, number=number, tuning_id=tuning_id)
        return Response(TuningDetailSerializer(row).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int, tuning_id: int) -> Response:
        """Stop the tuning, which becomes FAILED. Fails with 409 if it has ended."""
        now = timezone.now()
        tuning_stop(model=name, number=number, tuning_id=tuning_id, actor=actor_of(request), now=now)
        return Response(status=204)


class TuningApplyView(OfModel, APIView):
    """Application of a tuning to a service."""

    @idempotent()
    @extend_schema(request=TuningApplySerializer, responses=ServiceSerializer)
    def post(self, request: Request, name: str, number: int, tuning_id: int) -> Response:
        """Write the chosen configuration into the service's file. Its policy rolls out the new revision."""
        asked = TuningApplySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = tuning_get(model=name, number=number, tuning_id=tuning_id)
        named = asked.validated_data.get("service") or (row.service and f"{row.service.namespace}/{row.service.name}")
        if not named:
            raise InvalidInput(f"{row} is for no service; name the one to configure", field="service")
        service = named_service(request, named, Scope.WRITE)
        document = tuned_file(row=row, service=service)
        namespace, service_name = service
        arguments: dict[str, Any] = {
            "document": document,
            "namespace": namespace,
            "name": service_name,
            "now": timezone.now(),
        }
        cluster = services.service_check(**arguments, driver_of=driver_of)
        planned = services.service_plan(**arguments, actor=actor_of(request), accept=None)
        services.plan_check(planned.plan, driver_of(cluster))
        services.plan_patched(planned.plan, driver_of(cluster))
        planned.carry_out()
        return Response(
            ServiceSerializer(selectors.service_detail(namespace=namespace, name=service_name, now=timezone.now())).data
        )
