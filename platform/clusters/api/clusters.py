"""`/api/v1/clusters`: clusters that run services."""

from dataclasses import replace
from typing import Any

from django.utils import timezone
from django.utils.module_loading import import_string
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from accounts.auth.access import Place
from accounts.auth.permissions import actor_of
from accounts.domain.scopes import Scope
from clusters.api.serializers import ClusterCheckSerializer, ClusterDetailSerializer, ClusterSerializer
from clusters.selectors import cluster_get, cluster_query
from clusters.services.clusters import cluster_check, cluster_delete
from clusters.services.plans import cluster_plan
from clusters.services.trial import cluster_patches_try
from common.http.dry_run import DRY_RUN, is_dry_run, or_plan
from common.http.listing import ListView
from common.identifiers import check_dns_label
from events.api.serializers import EventSerializer
from events.selectors import cluster_event_query, event_view

_NAMESPACE = OpenApiParameter(
    "namespace", str, description="Namespace to check in addition to those of the cluster's services."
)
_TRIED_IN = OpenApiParameter(
    "namespace",
    str,
    description="Namespace to try the file's patches in, in addition to those of the cluster's services.",
)


def _plan_form() -> type[Serializer[Any]]:
    """Return the form of plans, which is that of services: named as text, as foreign keys upward are."""
    found: type[Serializer[Any]] = import_string("deployments.api.serializers.PlanSerializer")
    return found


class ClusterListView(ListView):
    """Lists clusters by name."""

    ordering = "name"

    @extend_schema(responses=ClusterSerializer(many=True))
    def get(self, _request: Request) -> Response:
        """List clusters by name, with their components."""
        return self.page(cluster_query(), list, ClusterSerializer)


class ClusterDetailView(APIView):
    """One cluster, for administrators of the installation."""

    scopes = {"GET": Scope.ADMIN, "PUT": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(responses=ClusterDetailSerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Return the cluster with its file and its services."""
        return Response(ClusterDetailSerializer(cluster_get(name=name)).data)

    @extend_schema(
        parameters=[DRY_RUN, _TRIED_IN],
        request=OpenApiTypes.OBJECT,
        responses={200: or_plan(ClusterDetailSerializer, _plan_form, "ClusterOrPlan"), 201: ClusterDetailSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        """Create or update the cluster; the body is the cluster file. A kubeconfig is encrypted and never returned."""
        planned = cluster_plan(document=request.data, name=name, actor=actor_of(request), now=timezone.now())
        patched, untried = cluster_patches_try(document=request.data, name=name, namespaces=_namespaces(request))
        if is_dry_run(request):
            return Response(_plan_form()(replace(planned.plan, patched=patched, untried=untried)).data)
        cluster, created = planned.carry_out()
        return Response(ClusterDetailSerializer(cluster).data, status=201 if created else 200)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete the cluster. Fails with 409 while services run on it, and for the default cluster."""
        cluster_delete(name=name, actor=actor_of(request), now=timezone.now())
        return Response(status=204)


class ClusterCheckView(APIView):
    """Check of whether services can run on the cluster."""

    scopes = {"GET": Scope.ADMIN}

    @extend_schema(parameters=[_NAMESPACE], responses=ClusterCheckSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Check the cluster now and return the findings with remedies. Changes nothing."""
        findings = cluster_check(cluster=cluster_get(name=name), namespaces=_namespaces(request), now=timezone.now())
        body = {"name": name, "ok": all(each.ok for each in findings), "findings": findings}
        return Response(ClusterCheckSerializer(body).data)


class ClusterEventListView(ListView):
    """Lists events of the cluster itself, newest first."""

    ordering = "-seq"

    def place(self) -> Place:
        """Return the required place: any, since all users see clusters."""
        return Place.anywhere()

    @extend_schema(responses=EventSerializer(many=True))
    def get(self, _request: Request, name: str) -> Response:
        """List events of the cluster itself, such as a restart of its gateway, newest first."""
        events = cluster_event_query(cluster_id=cluster_get(name=name).pk)
        return self.page(events, lambda rows: map(event_view, rows), EventSerializer)


def _namespaces(request: Request) -> list[str]:
    asked = request.query_params.get("namespace", "")
    return [check_dns_label(asked, field="namespace")] if asked else []
