"""`/api/v1/webhooks`: webhook subscriptions. Team admins manage their team's; administrators manage all."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import Place, administered, require
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.scopes import Scope
from common.errors import InvalidInput
from common.http.filters import Filter
from common.http.request_serializer import RequestSerializer
from events.models import Webhook, WebhookDelivery
from events.services import delivery, subscriptions
from events.services.subscriptions import CreatedWebhook, Teams


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook without its secret; `team` is null for a webhook of the whole installation."""

    team = serializers.CharField(source="team.name", default=None, allow_null=True)
    events = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Webhook
        fields = ["id", "team", "url", "events", "description", "enabled", "created_at", "created_by"]
        read_only_fields = fields


class CreatedWebhookSerializer(WebhookSerializer):
    """A webhook with the secret that signs its deliveries, which is returned only once."""

    secret = serializers.SerializerMethodField()

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields

    def get_secret(self, _webhook: Webhook) -> str:
        """Return the secret, which the view passes in the context."""
        return str(self.context["secret"])


class WebhookChangeSerializer(RequestSerializer[Webhook]):
    """Fields of the webhook to change; absent fields stay unchanged."""

    url = serializers.CharField(max_length=1000, required=False)
    events = serializers.ListField(child=serializers.CharField(max_length=60), max_length=100, required=False)
    description = serializers.CharField(allow_blank=True, max_length=300, required=False)
    enabled = serializers.BooleanField(required=False)


class WebhookCreateSerializer(RequestSerializer[Webhook]):
    """A webhook to create: URL and events, of a team's namespaces and models or of the installation."""

    url = serializers.CharField(max_length=1000)
    events = serializers.ListField(child=serializers.CharField(max_length=60), max_length=100)
    description = serializers.CharField(default="", allow_blank=True, max_length=300)
    team = serializers.CharField(
        default=None,
        allow_null=True,
        max_length=63,
        help_text="Team whose events are sent; null or absent for the whole installation.",
    )


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """A delivery of an event to a webhook; `answer` is the start of the response, or the error without one."""

    payload = serializers.DictField()

    class Meta:
        model = WebhookDelivery
        fields = [
            "id",
            "event",
            "payload",
            "status",
            "tries",
            "answer_status",
            "answer",
            "next_try_at",
            "created_at",
            "finished_at",
        ]
        read_only_fields = fields


class _AdminView(APIView):
    """A view for team admins; queries exclude other teams' webhooks."""

    scopes = dict.fromkeys(("GET", "POST", "PATCH", "DELETE"), Scope.ADMIN)

    def place(self) -> Place:
        return Place.anywhere()

    @property
    def teams(self) -> Teams:
        """Return the teams whose webhooks the caller may manage."""
        return administered(caller_token(self.request))

    def by(self) -> dict[str, Any]:
        """Return the caller's teams, the actor and the time, as arguments of the services."""
        return {"teams": self.teams, "actor": actor_of(self.request), "now": timezone.now()}


class WebhookListView(_AdminView, ListAPIView[Webhook]):
    """List webhooks, newest first."""

    serializer_class = WebhookSerializer
    ordering = "-id"
    orderings = ("id",)
    filters = (Filter("team", "team__name", "Filter by team."),)

    def get_queryset(self) -> QuerySet[Webhook]:
        return subscriptions.webhook_query(teams=self.teams)

    @idempotent(has_secret=True)
    @extend_schema(request=WebhookCreateSerializer, responses={201: CreatedWebhookSerializer})
    def post(self, request: Request) -> Response:
        """Create a webhook. The response contains its secret, which cannot be retrieved later."""
        asked = WebhookCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        team = asked.validated_data["team"]
        require(caller_token(request), Scope.ADMIN, Place.installation() if team is None else Place.team(team))
        made = subscriptions.webhook_create(**asked.validated_data, actor=actor_of(request), now=timezone.now())
        return _with_secret(made, 201)


class WebhookDetailView(_AdminView):
    """One webhook."""

    @extend_schema(responses=WebhookSerializer)
    def get(self, _request: Request, webhook_id: int) -> Response:
        """Return the webhook."""
        return Response(WebhookSerializer(subscriptions.webhook_get(webhook_id=webhook_id, teams=self.teams)).data)

    @extend_schema(request=WebhookChangeSerializer, responses=WebhookSerializer)
    def patch(self, request: Request, webhook_id: int) -> Response:
        """Update the webhook. Disabling it cancels pending deliveries."""
        asked = WebhookChangeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        if not asked.validated_data:
            raise InvalidInput(f"nothing to change was named; expected some of {', '.join(asked.fields)}")
        changed = subscriptions.webhook_change(webhook_id=webhook_id, fields=asked.validated_data, **self.by())
        return Response(WebhookSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, _request: Request, webhook_id: int) -> Response:
        """Delete the webhook and its delivery log."""
        subscriptions.webhook_delete(webhook_id=webhook_id, **self.by())
        return Response(status=204)


class WebhookSecretView(_AdminView):
    """The secret of a webhook."""

    @idempotent(has_secret=True)
    @extend_schema(request=None, responses={201: CreatedWebhookSerializer})
    def post(self, _request: Request, webhook_id: int) -> Response:
        """Replace the secret. The response contains the new one, which cannot be retrieved later."""
        return _with_secret(subscriptions.webhook_renew_secret(webhook_id=webhook_id, **self.by()), 201)


class WebhookTestView(_AdminView):
    """Sends a test event."""

    @idempotent()
    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, _request: Request, webhook_id: int) -> Response:
        """Send the event `Test` to the webhook once and return the delivery, whose progress the delivery log shows."""
        return Response(
            DeliverySerializer(subscriptions.webhook_test(webhook_id=webhook_id, **self.by())).data, status=201
        )


class DeliveryListView(_AdminView, ListAPIView[WebhookDelivery]):
    """List deliveries of the webhook, newest first, pending ones included."""

    serializer_class = DeliverySerializer
    ordering = "-id"
    orderings = ("id",)
    filters = (
        Filter(
            "status",
            "status",
            "Filter by status.",
            choices=(delivery.PENDING, delivery.DELIVERED, delivery.FAILED),
        ),
        Filter("event", "event", "Filter by event.", choices=(*delivery.EVENTS, delivery.TEST)),
    )

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        return subscriptions.delivery_query(webhook_id=self.kwargs["webhook_id"], teams=self.teams)


class DeliveryDetailView(_AdminView):
    """One delivery."""

    @extend_schema(responses=DeliverySerializer)
    def get(self, _request: Request, webhook_id: int, delivery_id: int) -> Response:
        """Return the delivery."""
        found = subscriptions.delivery_get(webhook_id=webhook_id, delivery_id=delivery_id, teams=self.teams)
        return Response(DeliverySerializer(found).data)


class DeliveryRepeatView(_AdminView):
    """Sends a delivery again."""

    @idempotent()
    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, _request: Request, webhook_id: int, delivery_id: int) -> Response:
        """Redeliver the event under its first id and return the new delivery. Fails with 409 while it is pending."""
        repeated = subscriptions.delivery_repeat(webhook_id=webhook_id, delivery_id=delivery_id, **self.by())
        return Response(DeliverySerializer(repeated).data, status=201)


def _with_secret(made: CreatedWebhook, status: int) -> Response:
    body = CreatedWebhookSerializer(made.webhook, context={"secret": made.secret}).data
    return Response(body, status=status)
