"""`/api/v1/models/{name}/imports`: imports of versions from a URI."""

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.permissions import actor_of
from jobs.services import hints
from registry import selectors
from registry.api import queries
from registry.api.access import OfModel
from registry.api.serializers import ImportCreateSerializer, ImportSerializer
from registry.models import ModelImport
from registry.services import imports
from registry.tasks import import_model


class ImportListView(OfModel, ListAPIView[ModelImport]):
    """List imports of the model, newest first. Imports that ended long ago are deleted."""

    serializer_class = ImportSerializer
    ordering = "-id"
    orderings = ("id",)
    filters = (queries.IMPORT_STATUS,)

    def get_queryset(self) -> QuerySet[ModelImport]:
        return selectors.import_list(model=self.kwargs["name"])

    @idempotent()
    @extend_schema(request=ImportCreateSerializer, responses={202: ImportSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Import a file, an archive, or a folder in Triton's layout (not by http) as the model's next version.

        A worker fetches the files. If a version with the same files exists, the import ends with that version.
        """
        arguments = ImportCreateSerializer(data=request.data).arguments()
        row = imports.import_request(model=name, **arguments, now=timezone.now(), actor=actor_of(request))
        transaction.on_commit(lambda: hints.send(import_model, row.pk))  # with an idempotency key one is open here
        return Response(ImportSerializer(row).data, status=status.HTTP_202_ACCEPTED)


class ImportDetailView(OfModel, APIView):
    """One import."""

    @extend_schema(responses=ImportSerializer)
    def get(self, _request: Request, name: str, import_id: int) -> Response:
        """Return the import. Its status is PENDING until the files are fetched, then IMPORTED or FAILED."""
        return Response(ImportSerializer(selectors.import_get(model=name, import_id=import_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, import_id: int) -> Response:
        """Stop the import, which becomes FAILED. Fails with 409 if it has ended."""
        imports.import_stop(model=name, import_id=import_id, now=timezone.now(), actor=actor_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
