"""`/api/v1/models` and its subresources: versions, artifacts and aliases."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import Place, require, visible
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from common.http.downloads import Asked, Download, download
from common.identifiers import check_model_name
from integrations.artifacts import stream as artifact_stream
from jobs.services import hints
from registry import selectors, services
from registry.api import queries, uploads
from registry.api.access import OfModel
from registry.api.serializers import (
    AliasSerializer,
    AliasSetSerializer,
    ModelChangeSerializer,
    ModelCreateSerializer,
    ModelSerializer,
    VersionChangeSerializer,
    VersionSerializer,
)
from registry.models import Alias, ModelVersion, RegisteredModel
from registry.selectors.filters import OF_MODELS, OF_VERSIONS
from registry.services import annotations, compatibility
from registry.services.images import check_has_files
from registry.services.version_checks import check_again
from registry.storage import store
from registry.tasks import check_version


class ModelListView(ListAPIView[RegisteredModel]):
    """List the models that the caller may see, by name."""

    serializer_class = ModelSerializer
    ordering = "name"
    orderings = ("-name", "created_at", "-created_at")
    filters = OF_MODELS

    def get_queryset(self) -> QuerySet[RegisteredModel]:
        return selectors.model_list().filter(visible(caller_token(self.request), Owned.MODEL, "name"))

    @idempotent()
    @extend_schema(request=ModelCreateSerializer, responses={201: ModelSerializer})
    def post(self, request: Request) -> Response:
        """Create a model without versions. Registering a version also creates its model."""
        asked = ModelCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        require(caller_token(request), Scope.WRITE, Place.model(asked.validated_data["name"]))
        model = services.model_create(**asked.validated_data, now=timezone.now(), actor=actor_of(request))
        body = ModelSerializer(selectors.model_get(name=model.name)).data
        return Response(body, status=status.HTTP_201_CREATED)


class ModelDetailView(OfModel, APIView):
    """One model."""

    @extend_schema(responses=ModelSerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Return the model."""
        return Response(ModelSerializer(selectors.model_get(name=name)).data)

    @extend_schema(request=ModelChangeSerializer, responses=ModelSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Update the description, tags or compatibility setting. Absent fields stay unchanged."""
        changes = ModelChangeSerializer(data=request.data).changes()
        annotations.model_annotate(name=name, changes=changes, now=timezone.now(), actor=actor_of(request))
        return Response(ModelSerializer(selectors.model_get(name=name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete the model with its versions and aliases. Fails with 409 while a service uses a version.

        A model that requires approvals or protects aliases needs an admin; its rules are kept for the next model of
        that name.
        """
        services.model_delete(
            name=name, now=timezone.now(), actor=actor_of(request), by_admin=self.is_by_admin(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class VersionListView(OfModel, ListAPIView[ModelVersion]):
    """List versions of the model, newest first."""

    serializer_class = VersionSerializer
    ordering = "-number"
    orderings = ("number", "size_bytes", "-size_bytes")
    filters = OF_VERSIONS

    def get_queryset(self) -> QuerySet[ModelVersion]:
        return selectors.version_list(model=self.kwargs["name"])

    @idempotent(is_streamed=True)
    @extend_schema(
        request={uploads.MEDIA_TYPE: OpenApiTypes.BINARY},
        responses={201: VersionSerializer, 200: VersionSerializer},
        parameters=[
            OpenApiParameter(
                "filename",
                str,
                required=True,
                description="File name that determines the format: a model file's, or for a folder `*.tar`, "
                "`*.tar.gz`, `*.zip`.",
            ),
            OpenApiParameter(
                uploads.SHA256_HEADER,
                str,
                OpenApiParameter.HEADER,
                description="SHA-256 of the body, 64 hex digits; verified if given.",
            ),
            *queries.PARTICULARS,
        ],
    )
    def post(self, request: Request, name: str) -> Response:
        """Register a version; the body is the file. Returns 200 with the existing version of the same files."""
        check_model_name(name)
        particulars = queries.particulars_of(request.query_params)
        compatibility.requirement(model=name, asked=particulars.compatible_with)  # refuses before the bytes come in
        artifact = uploads.receive_within_quota(request._request, model=name)
        version, created = services.version_register(
            model=name,
            artifact=artifact,
            source_name=request.query_params["filename"],
            now=timezone.now(),
            actor=actor_of(request),
            particulars=particulars,
        )
        hints.send(check_version, version.pk)
        body = VersionSerializer(selectors.model_version_get(model=name, number=version.number)).data
        return Response(body, status=status.HTTP_201_CREATED if created else status.HTTP_200_OK)


class VersionDetailView(OfModel, APIView):
    """One version of a model."""

    @extend_schema(responses=VersionSerializer)
    def get(self, _request: Request, name: str, number: int) -> Response:
        """Return the version. Its status is PENDING until the runtime has checked it, then READY or REJECTED."""
        return Response(VersionSerializer(selectors.model_version_get(model=name, number=number)).data)

    @extend_schema(request=VersionChangeSerializer, responses=VersionSerializer)
    def patch(self, request: Request, name: str, number: int) -> Response:
        """Update the description or tags. Files and lineage are immutable."""
        changes = VersionChangeSerializer(data=request.data).changes()
        annotations.version_annotate(
            model=name, number=number, changes=changes, now=timezone.now(), actor=actor_of(request)
        )
        return Response(VersionSerializer(selectors.model_version_get(model=name, number=number)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Delete the version. Fails with 409 while an alias points to it or a service uses it."""
        services.version_delete(model=name, number=number, now=timezone.now(), actor=actor_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class RecheckView(OfModel, APIView):
    """The repeated check of a REJECTED version."""

    @idempotent()
    @extend_schema(request=None, responses={202: VersionSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Check a REJECTED version again, for example after installing a library that it needs."""
        version = check_again(model=name, number=number, now=timezone.now(), actor=actor_of(request))
        transaction.on_commit(lambda: hints.send(check_version, version.pk))  # with an idempotency key one is open here
        return Response(VersionSerializer(version).data, status=status.HTTP_202_ACCEPTED)


class ArtifactView(OfModel, APIView):
    """The files of a version."""

    @extend_schema(responses={(200, uploads.MEDIA_TYPE): OpenApiTypes.BINARY})
    def get(self, request: Request, name: str, number: int) -> HttpResponse | Download:
        """Download the model file as pushed, or a tar archive if the version is a folder."""
        version = selectors.model_version_get(model=name, number=number)
        check_has_files(version)
        stream = artifact_stream.open_stream(store().path_of(version.digest))
        filename = f"{name}-{number}{stream.suffix}"
        asked = Asked.of(request.headers)
        return download(stream.pieces, asked, filename=filename, size_bytes=stream.size_bytes, digest=version.digest)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Ignore `Accept`: the file has one format, and errors are JSON."""
        return super().perform_content_negotiation(request, force=True)


class AliasListView(OfModel, ListAPIView[Alias]):
    """List aliases of the model by name."""

    serializer_class = AliasSerializer
    ordering = "name"

    def get_queryset(self) -> QuerySet[Alias]:
        return selectors.alias_list(model=self.kwargs["name"])


class AliasDetailView(OfModel, APIView):
    """One alias."""

    @extend_schema(request=AliasSetSerializer, responses={200: AliasSerializer, 201: AliasSerializer})
    def put(self, request: Request, name: str, alias: str) -> Response:
        """Point the alias to a READY version. Services that follow it roll out. Only admins move protected aliases."""
        asked = AliasSetSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        found, created = services.alias_set(
            model=name,
            name=alias,
            number=asked.validated_data["version"],
            now=timezone.now(),
            actor=actor_of(request),
            by_admin=self.is_by_admin(request),
        )
        return Response(AliasSerializer(found).data, status=status.HTTP_201_CREATED if created else status.HTTP_200_OK)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, alias: str) -> Response:
        """Delete the alias."""
        services.alias_delete(
            model=name, name=alias, now=timezone.now(), actor=actor_of(request), by_admin=self.is_by_admin(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
