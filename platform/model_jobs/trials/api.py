"""`/api/v1/models/{name}/versions/{number}/trials`: a request, answered by a version that no service need serve."""

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
    """A trial; it is DONE also where the model refused the request, which `report.error` says."""

    model = serializers.CharField(source="model_version.model.name")
    version = serializers.IntegerField(source="model_version.number")
    cluster = serializers.CharField(source="cluster.name")
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    stage = serializers.CharField(help_text="What it is at; empty while it waits for a worker.")
    report = serializers.DictField(
        help_text="`status` as a server answers over HTTP, `load_ms`, `first_ms`, `infer_ms` (the median of `runs` "
        "more answers), `error` in place of an answer, `labels` of classes by output; empty until it is DONE."
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
    """A trial with what was sent and what came back."""

    request = serializers.SerializerMethodField()
    answer = serializers.SerializerMethodField()

    class Meta(TrialSerializer.Meta):
        fields = [*TrialSerializer.Meta.fields, "request", "answer"]
        read_only_fields = fields

    def get_request(self, row: Trial) -> dict[str, Any]:
        """Return the body of the V2 request."""
        return dict(json.loads(row.request))

    def get_answer(self, row: Trial) -> dict[str, Any] | None:
        """Return the body of the V2 answer; null where there is none."""
        return dict(json.loads(row.answer)) if row.answer else None


class TrialStartSerializer(RequestSerializer[Trial]):
    """What to ask."""

    request = serializers.DictField(help_text="The body of a V2 inference request, of at most 4 MiB without spaces.")


class TrialListView(OfModel, ListView):
    """Trials of a version, newest first; they are kept for a day."""

    @extend_schema(responses=TrialSerializer(many=True))
    def get(self, _request: Request, name: str, number: int) -> Response:
        """Return a page of trials, without what was sent and what came back."""
        model_version_get(model=name, number=number)
        return self.page(trial_query(model=name, number=number), list, TrialSerializer)

    @idempotent()
    @extend_schema(request=TrialStartSerializer, responses={202: TrialSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Have one request answered by a version, by a run of the runtime for it alone where models are checked.

        The answer comes as a server gives it, with the times it took; an answer of more than 1 MiB is left out.
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
        """Return the trial: what it is at, and in the end the answer and how long it took."""
        row = trial_get(model=name, number=number, trial_id=trial_id)
        return Response(TrialDetailSerializer(row).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int, trial_id: int) -> Response:
        """Stop the trial, which then is FAILED; refused once it is over."""
        now = timezone.now()
        trial_stop(model=name, number=number, trial_id=trial_id, actor=actor_of(request), now=now)
        return Response(status=204)
