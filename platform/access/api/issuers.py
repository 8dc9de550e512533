"""`/api/v1/issuers`: OpenID providers and Kubernetes clusters whose tokens gateways accept."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import TokenIssuer
from access.selectors import issuer_get
from access.services.issuers import issuer_create, issuer_delete
from accounts.api.idempotency import idempotent
from accounts.auth.access import Place
from accounts.auth.permissions import actor_of
from accounts.domain.scopes import Scope
from common.http.request_serializer import RequestSerializer


class TokenIssuerSerializer(serializers.ModelSerializer[TokenIssuer]):
    """An issuer."""

    keys = serializers.SerializerMethodField(help_text="Number of its keys that gateways verify tokens with.")
    keys_given = serializers.BooleanField(source="are_given", help_text="Whether a person gave them; else fetched.")

    class Meta:
        model = TokenIssuer
        fields = [
            "name", "issuer", "audience", "keys", "keys_given", "fetched_at", "failure", "created_at", "created_by",
        ]  # fmt: skip
        read_only_fields = fields

    def get_keys(self, issuer: TokenIssuer) -> int:
        """Return the number of keys."""
        return len(issuer.public)


class TokenIssuerCreateSerializer(RequestSerializer[TokenIssuer]):
    """An issuer to create."""

    name = serializers.CharField(max_length=63, help_text="A DNS label, by which access policies name it.")
    issuer = serializers.CharField(max_length=500, help_text="`iss` of its tokens: its URL.")
    audience = serializers.CharField(max_length=200, help_text="What `aud` of its tokens must have.")
    keys = serializers.JSONField(
        required=False,
        help_text="Its JSON Web Key Set (RFC 7517); absent fetches it by OpenID Connect Discovery, every five minutes.",
    )


class IssuerListView(ListAPIView[TokenIssuer]):
    """List issuers by name."""

    serializer_class = TokenIssuerSerializer
    scopes = {"POST": Scope.ADMIN}
    ordering = "name"
    orderings = ("-name", "created_at", "-created_at")

    def place(self) -> Place:
        """Return the required place: any to read, the installation to change."""
        return Place.anywhere() if self.request.method in ("GET", "HEAD") else Place.installation()

    def get_queryset(self) -> QuerySet[TokenIssuer]:
        return TokenIssuer.objects.all()

    @idempotent()
    @extend_schema(request=TokenIssuerCreateSerializer, responses={201: TokenIssuerSerializer})
    def post(self, request: Request) -> Response:
        """Create an issuer; gateways accept its tokens within seconds."""
        asked = TokenIssuerCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        issuer = issuer_create(
            name=said["name"],
            issuer=said["issuer"],
            audience=said["audience"],
            keys=said.get("keys"),
            actor=actor_of(request),
            now=timezone.now(),
        )
        return Response(TokenIssuerSerializer(issuer).data, status=status.HTTP_201_CREATED)


class IssuerDetailView(APIView):
    """One issuer."""

    scopes = {"DELETE": Scope.ADMIN}

    def place(self) -> Place:
        """Return the required place: any to read, the installation to change."""
        return Place.anywhere() if self.request.method in ("GET", "HEAD") else Place.installation()

    @extend_schema(responses=TokenIssuerSerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Return the issuer."""
        return Response(TokenIssuerSerializer(issuer_get(name=name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete the issuer; gateways refuse its tokens within seconds."""
        issuer_delete(name=name, actor=actor_of(request), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
