"""`/api/v1/secrets`: values for variables of services on the local cluster. No response has a value."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import Place, require
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.scopes import Scope
from common.http.filters import Filter
from common.http.request_serializer import RequestSerializer
from sealed_secrets.models import SealedSecret
from sealed_secrets.selectors import secret_get, secret_query, uses_of
from sealed_secrets.services import MAX_VALUE_CHARACTERS, secret_change, secret_create, secret_delete


class SecretSerializer(serializers.ModelSerializer[SealedSecret]):
    """A secret without its values, which are never returned."""

    keys = serializers.SerializerMethodField(help_text="Names of its values.")
    services = serializers.SerializerMethodField(help_text="Services that use it, as `<namespace>/<name>`.")

    class Meta:
        model = SealedSecret
        fields = ["namespace", "name", "keys", "services", "created_at", "created_by", "changed_at", "changed_by"]
        read_only_fields = fields

    def get_keys(self, secret: SealedSecret) -> list[str]:
        """Return the names of its values."""
        return sorted(each.key for each in secret.values.all())

    def get_services(self, secret: SealedSecret) -> list[str]:
        """Return the services that use it; a list's are read at once."""
        uses = self.context.get("uses") or uses_of([secret])
        return sorted({f"{use.namespace}/{use.service}" for use in uses.get(secret.pk, ())})


class SecretCreateSerializer(RequestSerializer[SealedSecret]):
    """A secret to create."""

    namespace = serializers.CharField(max_length=63, default="default", help_text="Of the services that use it.")
    name = serializers.CharField(max_length=253, help_text="As service files name it.")
    values = serializers.DictField(
        child=serializers.CharField(max_length=MAX_VALUE_CHARACTERS, trim_whitespace=False, write_only=True),
        write_only=True,
        help_text="Its values by their keys.",
    )


class SecretChangeSerializer(RequestSerializer[SealedSecret]):
    """Values of a secret to set or remove."""

    values = serializers.DictField(
        child=serializers.CharField(
            max_length=MAX_VALUE_CHARACTERS, trim_whitespace=False, write_only=True, allow_null=True
        ),
        write_only=True,
        allow_empty=False,
        help_text="Values by their keys; null removes a key, and others stay.",
    )


class SecretListView(ListAPIView[SealedSecret]):
    """List secrets of the namespaces that the caller may see, oldest first."""

    serializer_class = SecretSerializer
    ordering = "id"
    orderings = ("-id", "name", "-name", "changed_at", "-changed_at")
    filters = (Filter("namespace", "namespace", "Filter by namespace."),)

    def place(self) -> Place:
        """Return the required place: any; a secret is created by a deployer of its namespace."""
        return Place.anywhere()

    def get_queryset(self) -> QuerySet[SealedSecret]:
        return secret_query(token=caller_token(self.request))

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        """Return the serializer of a page, whose uses are read by one query."""
        if kwargs.get("many") and args:
            kwargs["context"] = {**self.get_serializer_context(), "uses": uses_of(args[0])}
        return super().get_serializer(*args, **kwargs)

    @idempotent()
    @extend_schema(request=SecretCreateSerializer, responses={201: SecretSerializer})
    def post(self, request: Request) -> Response:
        """Create a secret. Its values are encrypted, and no response returns them."""
        asked = SecretCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        require(caller_token(request), Scope.WRITE, Place.namespace(said["namespace"]))
        created = secret_create(
            namespace=said["namespace"],
            name=said["name"],
            values=said["values"],
            actor=actor_of(request),
            now=timezone.now(),
        )
        return Response(SecretSerializer(created).data, status=status.HTTP_201_CREATED)


class SecretDetailView(APIView):
    """One secret."""

    scopes = {"DELETE": Scope.ADMIN}
    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the required place: the secret's namespace."""
        return Place.namespace(self.kwargs["namespace"])

    @extend_schema(responses=SecretSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """Return the names of the secret's values, and the services that use it."""
        return Response(SecretSerializer(secret_get(namespace=namespace, name=name)).data)

    @extend_schema(request=SecretChangeSerializer, responses=SecretSerializer)
    def patch(self, request: Request, namespace: str, name: str) -> Response:
        """Set or remove values. Running replicas keep the values that they began with until they are restarted."""
        asked = SecretChangeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        changed = secret_change(
            namespace=namespace,
            name=name,
            values=asked.validated_data["values"],
            actor=actor_of(request),
            now=timezone.now(),
        )
        return Response(SecretSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace: str, name: str) -> Response:
        """Delete the secret; refused while services use it."""
        secret_delete(namespace=namespace, name=name, actor=actor_of(request), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
