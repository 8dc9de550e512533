"""`/api/v1/policies`, `/services`, `/rollouts` and their subresources."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from django.db.models import Q
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import Place, is_administrator, visible
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.roles import Owned
from clusters.services.cluster_selection import cluster_of
from clusters.services.connection import driver_of
from common.http.dry_run import DRY_RUN, is_dry_run, or_plan
from common.http.filters import Filter, Kind
from common.http.listing import ListView as _ListView
from deployments import selectors, services
from deployments.api.acceptance import ACCEPT, REASON, accepted, accepted_in_query
from deployments.api.approval_serializers import CommentSerializer, said
from deployments.api.serializers import (
    PlanSerializer,
    PolicySerializer,
    RevisionSerializer,
    RollbackSerializer,
    RolloutSerializer,
    RolloutStartSerializer,
    ServiceSerializer,
)
from deployments.domain.phases import Phase, ServicePhase
from deployments.domain.policy import Strategy
from deployments.domain.service_state.desired import Role
from deployments.models import Rollout
from deployments.selectors.permissions import OfRollout, require_model_use
from deployments.services.current_load import look, survey
from deployments.services.files.file_preflight import service_planned
from events.api.serializers import EventSerializer
from events.selectors import event_view, service_event_query


class PolicyListView(_ListView):
    """Lists policies by name."""

    ordering = "name"
    orderings = ("-name", "created_at", "-created_at", "updated_at", "-updated_at")
    filters = (Filter("strategy", "strategy", "Filter by strategy.", choices=tuple(Strategy)),)

    @extend_schema(responses=PolicySerializer(many=True))
    def get(self, _request: Request) -> Response:
        """List policies by name."""
        return self.page(selectors.policy_query(), list, PolicySerializer)


class PolicyDetailView(APIView):
    """One policy; owned by the default team, usable by all teams."""

    def place(self) -> Place:
        """Return the place where the caller needs a role."""
        return Place.anywhere() if self.request.method in SAFE_METHODS else Place.installation()

    @extend_schema(responses=PolicySerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Return the policy."""
        return Response(PolicySerializer(selectors.policy_get(name=name)).data)

    @extend_schema(
        parameters=[DRY_RUN],
        request=OpenApiTypes.OBJECT,
        responses={200: or_plan(PolicySerializer, lambda: PlanSerializer, "PolicyOrPlan"), 201: PolicySerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        """Create or update the policy; the body is the policy file. Rollouts in progress keep their earlier policy."""
        now, by = timezone.now(), actor_of(request)
        all_series = is_administrator(caller_token(request))
        if is_dry_run(request):
            plan = services.policy_plan(
                document=request.data, name=name, actor=by, now=now, may_read_all_series=all_series
            )
            return Response(PlanSerializer(plan).data)
        policy, created = services.policy_apply(
            document=request.data, name=name, actor=by, now=now, may_read_all_series=all_series
        )
        return Response(PolicySerializer(policy).data, status=201 if created else 200)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete the policy. Fails with 409 while a service names it."""
        services.policy_delete(name=name, actor=actor_of(request), now=timezone.now())
        return Response(status=204)


class _Words(Filter):
    """Keeps the services whose names contain every search term."""

    def condition(self, text: str) -> Q:
        """Return the condition for search terms separated by spaces."""
        super().condition(text)
        return selectors.service_search(text.split())


class ServiceListView(_ListView):
    """Lists the services that the caller may see, in order of creation."""

    ordering = "id"
    orderings = ("-id", "name", "-name", "created_at", "-created_at")
    filters = (
        _Words(
            "search", "", "Search terms, separated by spaces; each must occur in the name, namespace or model name."
        ),
        Filter("namespace", "namespace", "Filter by namespace."),
        Filter("name", "name", "Filter by name."),
        Filter("phase", "phase", "Filter by phase.", choices=tuple(ServicePhase)),
        Filter("model", "model_version__model__name", "Filter by model."),
        Filter("policy", "policy__name", "Filter by policy."),
    )

    @extend_schema(responses=ServiceSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the services that the caller may see, in order of creation."""
        services = selectors.service_query().filter(visible(caller_token(request), Owned.NAMESPACE, "namespace"))
        return self.page(services, partial(selectors.service_views, now=timezone.now()), ServiceSerializer)


class ServiceDetailView(APIView):
    """One service."""

    @extend_schema(responses=ServiceSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """Return the service."""
        return Response(_service_body(namespace, name))

    @extend_schema(
        parameters=[DRY_RUN, ACCEPT, REASON],
        request=OpenApiTypes.OBJECT,
        responses={200: or_plan(ServiceSerializer, lambda: PlanSerializer, "ServiceOrPlan"), 201: ServiceSerializer},
    )
    def put(self, request: Request, namespace: str, name: str) -> Response:
        """Create or update the service; the body is the service file. Changing a live service starts a rollout."""
        accept = accepted_in_query(request, namespace)
        arguments: dict[str, Any] = {
            "document": request.data,
            "namespace": namespace,
            "name": name,
            "now": timezone.now(),
        }
        arguments |= {"actor": actor_of(request), "accept": accept}
        arguments |= {"may_grant_egress": is_administrator(caller_token(request))}
        planned = service_planned(caller_token(request), **arguments)
        if is_dry_run(request):
            return Response(PlanSerializer(planned.plan).data)
        _, created = planned.carry_out()
        body = _service_body(namespace, name)
        return Response(body, status=201 if created else 200)

    @extend_schema(responses={202: ServiceSerializer})
    def delete(self, request: Request, namespace: str, name: str) -> Response:
        """Drain and delete the service, which stays in phase Deleting until none of its replicas run."""
        services.service_delete(namespace=namespace, name=name, actor=actor_of(request), now=timezone.now())
        return _taken_up(namespace, name)


class ServiceRollbackView(APIView):
    """Rollback of a service."""

    @idempotent()
    @extend_schema(request=RollbackSerializer, responses={201: RolloutSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Roll back to an earlier stable revision, without steps; immediate if that revision still runs."""
        asked = RollbackSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        rollout = services.service_rollback(
            namespace=namespace,
            name=name,
            revision=asked.validated_data.get("revision"),
            actor=actor_of(request),
            now=timezone.now(),
            may_grant_egress=is_administrator(caller_token(request)),
        )
        return Response(_rollout_body(rollout.pk), status=201)


class ServiceRestartView(APIView):
    """Restart of a service."""

    @idempotent()
    @extend_schema(request=None, responses={202: ServiceSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Restart the service's replicas one after another; `replicas_to_restart` counts down."""
        services.service_restart(namespace=namespace, name=name, actor=actor_of(request), now=timezone.now())
        return _taken_up(namespace, name)


class ServiceStopView(APIView):
    """Stop of a service."""

    @idempotent()
    @extend_schema(request=None, responses={202: ServiceSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Stop the service and keep its file and history. It is Stopped immediately; its replicas drain."""
        services.service_stop(namespace=namespace, name=name, actor=actor_of(request), now=timezone.now())
        return _taken_up(namespace, name)


class ServiceResumeView(APIView):
    """Resume of a service."""

    @idempotent()
    @extend_schema(request=None, responses={202: ServiceSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Resume a stopped service, which serves once its first replica is ready."""
        services.service_resume(namespace=namespace, name=name, actor=actor_of(request), now=timezone.now())
        return _taken_up(namespace, name)


def _taken_up(namespace: str, name: str) -> Response:
    """Return the service's current state, while the requested change proceeds."""
    body = _service_body(namespace, name)
    return Response(body, status=202)


class RevisionListView(_ListView):
    """Lists revisions of a service."""

    ordering = "-number"
    orderings = ("number",)
    filters = (
        Filter("role", "role", "Filter by role.", choices=tuple(Role)),
        Filter("model_version", "model_version__number", "Filter by number of the model version.", Kind.INTEGER),
    )

    @extend_schema(responses=RevisionSerializer(many=True))
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """List revisions of the service, newest first."""
        service = selectors.service_get(namespace=namespace, name=name)

        def shape(page: Sequence[Any]) -> Iterable[Any]:
            return selectors.revision_views(service, page)

        return self.page(selectors.revision_query(service=service), shape, RevisionSerializer)


class EventListView(_ListView):
    """Lists events of a service."""

    ordering = "-seq"
    orderings = ("seq",)
    filters = (
        Filter("kind", "kind", "Filter by kind, such as `RolloutStarted`."),
        Filter("revision", "revision", "Filter by revision."),
        Filter("rollout", "rollout_id", "Filter by rollout id.", Kind.INTEGER),
        Filter("since", "at__gte", "Filter by time: events at or after it.", Kind.MOMENT),
        Filter("until", "at__lt", "Filter by time: events before it.", Kind.MOMENT),
    )

    @extend_schema(responses=EventSerializer(many=True))
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """List events of the service, newest first."""
        events = service_event_query(service_id=selectors.service_get(namespace=namespace, name=name).pk)
        return self.page(events, lambda rows: map(event_view, rows), EventSerializer)


class RolloutListView(_ListView):
    """Lists rollouts of a service."""

    orderings = ("id",)
    filters = (
        Filter("phase", "phase", "Filter by phase.", choices=tuple(Phase)),
        Filter("policy", "policy_name", "Filter by policy."),
    )

    @extend_schema(responses=RolloutSerializer(many=True))
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """List rollouts of the service, newest first."""
        service = selectors.service_get(namespace=namespace, name=name)
        rollouts = selectors.rollout_query(service=service)
        return self.page(rollouts, partial(selectors.rollout_views, now=timezone.now()), RolloutSerializer)

    @idempotent()
    @extend_schema(
        parameters=[DRY_RUN],
        request=RolloutStartSerializer,
        responses={200: PlanSerializer, 201: RolloutSerializer},
    )
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Start a rollout to another version. Supersedes a rollout in progress."""
        asked = RolloutStartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        body = asked.validated_data
        require_model_use(caller_token(request), body["version"])
        accept = accepted(request, namespace, is_asked=body["accept_contract_changes"], reason=body.get("reason"))
        asked_for: dict[str, Any] = {
            "namespace": namespace,
            "name": name,
            "version": body["version"],
            "policy": body.get("policy"),
            "actor": actor_of(request),
            "now": timezone.now(),
            "accept": accept,
        }
        now = asked_for["now"]
        foreseen: dict[str, Any] = (
            {"look": partial(look, now), "survey": partial(survey, now)} if is_dry_run(request) else {}
        )
        planned = services.rollout_plan(**asked_for, **foreseen)
        services.plan_check(planned.plan, driver_of(cluster_of(namespace=namespace, name=name)))
        if is_dry_run(request):
            return Response(PlanSerializer(planned.plan).data)
        started = planned.carry_out()
        return Response(_rollout_body(started.pk), status=201)


class RolloutDetailView(OfRollout, APIView):
    """One rollout."""

    @extend_schema(responses=RolloutSerializer)
    def get(self, _request: Request, rollout_id: int) -> Response:
        """Return the rollout with its analysis runs."""
        return _shown(rollout_id)


class RolloutPromoteView(OfRollout, APIView):
    """Promotion of a paused rollout."""

    @idempotent()
    @extend_schema(request=CommentSerializer, responses=RolloutSerializer)
    def post(self, request: Request, rollout_id: int) -> Response:
        """Promote a paused rollout, which continues after the pause."""
        return _moved(services.rollout_promote, request, rollout_id)


class RolloutAbortView(OfRollout, APIView):
    """Abort of a rollout."""

    @idempotent()
    @extend_schema(request=CommentSerializer, responses=RolloutSerializer)
    def post(self, request: Request, rollout_id: int) -> Response:
        """Abort the rollout and return all traffic to stable."""
        return _moved(services.rollout_abort, request, rollout_id)


class RolloutRetryView(OfRollout, APIView):
    """Retry of a rollout."""

    @idempotent()
    @extend_schema(request=CommentSerializer, responses=RolloutSerializer)
    def post(self, request: Request, rollout_id: int) -> Response:
        """Retry a degraded or aborted rollout from its first step."""
        return _moved(services.rollout_retry, request, rollout_id)


def _moved(move: Callable[..., Rollout], request: Request, rollout_id: int) -> Response:
    move(rollout_id=rollout_id, actor=actor_of(request), now=timezone.now(), comment=said(request))
    return _shown(rollout_id)


def _shown(rollout_id: int) -> Response:
    return Response(_rollout_body(rollout_id))


def _service_body(namespace: str, name: str) -> Any:
    view = selectors.service_detail(namespace=namespace, name=name, now=timezone.now())
    return ServiceSerializer(view).data


def _rollout_body(rollout_id: int) -> Any:
    view = selectors.rollout_detail(rollout_id=rollout_id, now=timezone.now())
    return RolloutSerializer(view).data
