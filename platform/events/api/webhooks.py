"""`/api/v1/webhooks`: for admins of teams, each team's own, and for who administers the installation, all of them."""

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
    """A webhook without its secret; one without a team is the installation's."""

    team = serializers.CharField(source="team.name", default=None, allow_null=True)
    events = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Webhook
        fields = ["id", "team", "url", "events", "description", "enabled", "created_at", "created_by"]
        read_only_fields = fields


class CreatedWebhookSerializer(WebhookSerializer):
    """A webhook with the secret that signs what it is told, shown this once."""

    secret = serializers.SerializerMethodField()

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields

    def get_secret(self, _webhook: Webhook) -> str:
        """Return the secret, which the view hands over in the context."""
        return str(self.context["secret"])


class WebhookChangeSerializer(RequestSerializer[Webhook]):
    """What is to be another; the rest stays."""

    url = serializers.CharField(max_length=1000, required=False)
    events = serializers.ListField(child=serializers.CharField(max_length=60), max_length=100, required=False)
    description = serializers.CharField(allow_blank=True, max_length=300, required=False)
    enabled = serializers.BooleanField(required=False)


class WebhookCreateSerializer(RequestSerializer[Webhook]):
    """Where to post which events, of a team's namespaces and models or of all."""

    url = serializers.CharField(max_length=1000)
    events = serializers.ListField(child=serializers.CharField(max_length=60), max_length=100)
    description = serializers.CharField(default="", allow_blank=True, max_length=300)
    team = serializers.CharField(
        default=None, allow_null=True, max_length=63, help_text="Of the whole installation if absent."
    )


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """What a webhook was or will be told; `answer` is the beginning of the answer, or why there was none."""

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
    """For admins of a team: the queries leave out what is another team's."""

    scopes = dict.fromkeys(("GET", "POST", "PATCH", "DELETE"), Scope.ADMIN)

    def place(self) -> Place:
        return Place.anywhere()

    @property
    def teams(self) -> Teams:
        """Return whose webhooks the caller may manage."""
        return administered(caller_token(self.request))

    def by(self) -> dict[str, Any]:
        """Return who asks, and when, as the services take it."""
        return {"teams": self.teams, "actor": actor_of(self.request), "now": timezone.now()}


class WebhookListView(_AdminView, ListAPIView[Webhook]):
    """Webhooks, newest first."""

    serializer_class = WebhookSerializer
    ordering = "-id"
    orderings = ("id",)
    filters = (Filter("team", "team__name", "Only webhooks of this team."),)

    def get_queryset(self) -> QuerySet[Webhook]:
        return subscriptions.webhook_query(teams=self.teams)

    @idempotent(has_secret=True)
    @extend_schema(request=WebhookCreateSerializer, responses={201: CreatedWebhookSerializer})
    def post(self, request: Request) -> Response:
        """Make a webhook; the answer has its secret, which cannot be had again."""
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
        """Change the webhook; with `enabled` false, what was not told yet is given up."""
        asked = WebhookChangeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        if not asked.validated_data:
            raise InvalidInput(f"nothing to change was named; expected some of {', '.join(asked.fields)}")
        changed = subscriptions.webhook_change(webhook_id=webhook_id, fields=asked.validated_data, **self.by())
        return Response(WebhookSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, _request: Request, webhook_id: int) -> Response:
        """Delete the webhook with the log of its deliveries."""
        subscriptions.webhook_delete(webhook_id=webhook_id, **self.by())
        return Response(status=204)


class WebhookSecretView(_AdminView):
    """The secret of a webhook."""

    @idempotent(has_secret=True)
    @extend_schema(request=None, responses={201: CreatedWebhookSerializer})
    def post(self, _request: Request, webhook_id: int) -> Response:
        """Replace the secret; the answer has the new one, which cannot be had again."""
        return _with_secret(subscriptions.webhook_renew_secret(webhook_id=webhook_id, **self.by()), 201)


class WebhookTestView(_AdminView):
    """A call that tells of nothing."""

    @idempotent()
    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, _request: Request, webhook_id: int) -> Response:
        """Tell the webhook of the event `Test`, once, and return the delivery, which the log of deliveries follows."""
        return Response(
            DeliverySerializer(subscriptions.webhook_test(webhook_id=webhook_id, **self.by())).data, status=201
        )


class DeliveryListView(_AdminView, ListAPIView[WebhookDelivery]):
    """What the webhook was and will be told, newest first."""

    serializer_class = DeliverySerializer
    ordering = "-id"
    orderings = ("id",)
    filters = (
        Filter(
            "status",
            "status",
            "Only deliveries in this state.",
            choices=(delivery.PENDING, delivery.DELIVERED, delivery.FAILED),
        ),
        Filter("event", "event", "Only deliveries of this event.", choices=(*delivery.EVENTS, delivery.TEST)),
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
    """What was told already."""

    @idempotent()
    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, _request: Request, webhook_id: int, delivery_id: int) -> Response:
        """Tell it again under its first id and return the new delivery; refused while it is being tried."""
        repeated = subscriptions.delivery_repeat(webhook_id=webhook_id, delivery_id=delivery_id, **self.by())
        return Response(DeliverySerializer(repeated).data, status=201)


def _with_secret(made: CreatedWebhook, status: int) -> Response:
    body = CreatedWebhookSerializer(made.webhook, context={"secret": made.secret}).data
    return Response(body, status=status)
