"""`/api/v1/models/{name}/versions/{number}/trials`: trials, single requests answered by a version without a service."""

import json
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
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from jobs.domain.attempts import Status
from jobs.services import hints
from model_jobs import tasks
from model_jobs.models import Trial
from model_jobs.trials.selectors import trial_get, trial_query
from model_jobs.trials.services import trial_start, trial_stop
from registry.api.access import OfModel
from registry.selectors import model_version_get


class TrialSerializer(serializers.ModelSerializer[Trial]):
    """A trial; it is also DONE if the model rejected the request, with the error in `report.error`."""

    model = serializers.CharField(source="model_version.model.name")
    version = serializers.IntegerField(source="model_version.number")
    cluster = serializers.CharField(source="cluster.name")
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    stage = serializers.CharField(help_text="Current stage; empty while the trial waits for a worker.")
    report = serializers.DictField(
        help_text="Report: HTTP `status`, `load_ms`, `first_ms`, `infer_ms` (median of `runs` further responses), "
        "`error` in place of a response, class `labels` by output; empty until the trial is DONE."
    )

    class Meta:
        model = Trial
        fields = [
            "id",
            "model",
            "version",
            "cluster",
            "status",
            "reason",
            "stage",
            "report",
            "created_at",
            "created_by",
            "finished_at",
        ]
        read_only_fields = fields


class TrialDetailSerializer(TrialSerializer):
    """A trial with its request and response."""

    request = serializers.SerializerMethodField()
    answer = serializers.SerializerMethodField()

    class Meta(TrialSerializer.Meta):
        fields = [*TrialSerializer.Meta.fields, "request", "answer"]
        read_only_fields = fields

    def get_request(self, row: Trial) -> dict[str, Any]:
        """Return the body of the V2 request."""
        return dict(json.loads(row.request))

    def get_answer(self, row: Trial) -> dict[str, Any] | None:
        """Return the body of the V2 response; None without one."""
        return dict(json.loads(row.answer)) if row.answer else None


class TrialStartSerializer(RequestSerializer[Trial]):
    """A trial to start."""

    request = serializers.DictField(help_text="Body of a V2 inference request, at most 4 MiB without spaces.")


class TrialListView(OfModel, ListView):
    """Lists trials of a version."""

    @extend_schema(responses=TrialSerializer(many=True))
    def get(self, _request: Request, name: str, number: int) -> Response:
        """List trials of the version, newest first, without requests and responses. Trials are kept for a day."""
        model_version_get(model=name, number=number)
        return self.page(trial_query(model=name, number=number), list, TrialSerializer)

    @idempotent()
    @extend_schema(request=TrialStartSerializer, responses={202: TrialSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Send one request to the version, in a dedicated run of the runtime where models are checked.

        The trial has the response as a server returns it, and its timings; a response above 1 MiB is omitted.
        """
        asked = TrialStartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = trial_start(
            model=name,
            number=number,
            request=asked.validated_data["request"],
            actor=actor_of(request),
            now=timezone.now(),
        )
        transaction.on_commit(lambda: hints.send(tasks.try_version, row.pk))  # with an idempotency key one is open here
        return Response(TrialSerializer(row).data, status=202)


class TrialDetailView(OfModel, APIView):
    """One trial."""

    @extend_schema(responses=TrialDetailSerializer)
    def get(self, _request: Request, name: str, number: int, trial_id: int) -> Response:
        """Return the trial with its stage and, once DONE, its response and timings."""
        row = trial_get(model=name, number=number, trial_id=trial_id)
        return Response(TrialDetailSerializer(row).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int, trial_id: int) -> Response:
        """Stop the trial, which becomes FAILED. Fails with 409 if it has ended."""
        now = timezone.now()
        trial_stop(model=name, number=number, trial_id=trial_id, actor=actor_of(request), now=now)
        return Response(status=204)
