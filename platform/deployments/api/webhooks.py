"""`/api/v1/webhooks`: for who administers the installation, since they tell of every team's services."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.permissions import actor_of
from accounts.scopes import Scope
from common.filters import Filter
from common.requests import RequestSerializer
from deployments import webhooks
from deployments.history import Kind
from deployments.models import Webhook, WebhookDelivery

_ADMIN = {"GET": Scope.ADMIN, "POST": Scope.ADMIN, "DELETE": Scope.ADMIN}


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook without its secret."""

    events = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Webhook
        fields = ["id", "url", "events", "description", "created_at", "created_by"]
        read_only_fields = fields


class CreatedWebhookSerializer(WebhookSerializer):
    """A webhook with the secret that signs what it is told, shown this once."""

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class WebhookCreateSerializer(RequestSerializer[Webhook]):
    """Where to post which events."""

    url = serializers.CharField(max_length=1000)
    events = serializers.ListField(child=serializers.CharField(max_length=60), max_length=100)
    description = serializers.CharField(default="", allow_blank=True, max_length=300)


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


class WebhookListView(ListAPIView[Webhook]):
    """Webhooks, newest first."""

    serializer_class = WebhookSerializer
    scopes = _ADMIN
    ordering = "-id"
    orderings = ("id",)

    def get_queryset(self) -> QuerySet[Webhook]:
        return webhooks.webhook_query()

    @idempotent(has_secret=True)
    @extend_schema(request=WebhookCreateSerializer, responses={201: CreatedWebhookSerializer})
    def post(self, request: Request) -> Response:
        """Make a webhook; the answer has its secret, which cannot be had again."""
        asked = WebhookCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = webhooks.webhook_create(**asked.validated_data, actor=actor_of(request), now=timezone.now())
        return Response(CreatedWebhookSerializer(made).data, status=201)


class WebhookDetailView(APIView):
    """One webhook."""

    scopes = _ADMIN

    @extend_schema(responses=WebhookSerializer)
    def get(self, _request: Request, webhook_id: int) -> Response:
        """Return the webhook."""
        return Response(WebhookSerializer(webhooks.webhook_get(webhook_id=webhook_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, webhook_id: int) -> Response:
        """Delete the webhook with the log of its deliveries."""
        webhooks.webhook_delete(webhook_id=webhook_id, actor=actor_of(request), now=timezone.now())
        return Response(status=204)


class DeliveryListView(ListAPIView[WebhookDelivery]):
    """What the webhook was and will be told, newest first."""

    serializer_class = DeliverySerializer
    scopes = _ADMIN
    ordering = "-id"
    orderings = ("id",)
    filters = (
        Filter(
            "status",
            "status",
            "Only deliveries in this state.",
            choices=(webhooks.PENDING, webhooks.DELIVERED, webhooks.FAILED),
        ),
        Filter("event", "event", "Only deliveries of this event.", choices=(*Kind, webhooks.TEST)),
    )

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        return webhooks.delivery_query(webhook_id=self.kwargs["webhook_id"])


class WebhookTestView(APIView):
    """A call that tells of nothing."""

    scopes = _ADMIN

    @idempotent()
    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, request: Request, webhook_id: int) -> Response:
        """Tell the webhook of the event `Test` and return the delivery, which the log of deliveries follows."""
        delivery = webhooks.webhook_test(webhook_id=webhook_id, actor=actor_of(request), now=timezone.now())
        return Response(DeliverySerializer(delivery).data, status=201)
