"""JSON forms of what was approved and what is asked for."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from common.http.request_serializer import RequestSerializer
from deployments.domain.rollout.approvals import Standing
from deployments.views.approvals import ApprovalsView, ApprovalView


class CommentSerializer(RequestSerializer[dict[str, str]]):
    """What somebody says with it."""

    comment = serializers.CharField(max_length=1000, required=False, default="", allow_blank=True)


class ReasonedSerializer(RequestSerializer[dict[str, str]]):
    """Why somebody says no."""

    comment = serializers.CharField(max_length=1000)


def said(request: Request, form: type[RequestSerializer[dict[str, str]]] = CommentSerializer) -> str:
    """Return the comment in the request's body; raises ValidationError."""
    asked = form(data=request.data)
    asked.is_valid(raise_exception=True)
    return str(asked.validated_data["comment"])


class ApprovalSerializer(serializers.Serializer[ApprovalView]):
    """An approval: what it is for, and what it is good for now."""

    id = serializers.IntegerField()
    user = serializers.CharField()
    comment = serializers.CharField()
    point = serializers.CharField(help_text="Where in the rollout: `the beginning` or `step 2`.")
    attempt = serializers.IntegerField()
    artifact_digest = serializers.CharField()
    configuration_digest = serializers.CharField()
    policy_digest = serializers.CharField()
    state = serializers.ChoiceField(choices=[standing.value for standing in Standing])
    why = serializers.CharField(help_text="Why it expired; empty where it did not.")
    given_at = serializers.DateTimeField()


class AskedSerializer(serializers.Serializer[ApprovalsView]):
    """What is asked for at the present point, and how much of it is there."""

    point = serializers.CharField()
    is_awaited = serializers.BooleanField(help_text="Whether approvals can be given now.")
    approvals = serializers.IntegerField(source="asked.rule.approvals")
    missing = serializers.IntegerField(source="asked.missing")
    four_eyes = serializers.BooleanField(source="asked.rule.four_eyes")
    expires_seconds = serializers.SerializerMethodField()

    def get_expires_seconds(self, view: ApprovalsView) -> float:
        """Return how long an approval counts."""
        return 0.0 if view.asked is None else view.asked.rule.expires.total_seconds()


class ApprovalsSerializer(serializers.Serializer[ApprovalsView]):
    """What was approved of a rollout, and what is asked for; `asked` is null where nobody is asked."""

    asked = serializers.SerializerMethodField()
    given = ApprovalSerializer(many=True)

    @extend_schema_field(AskedSerializer(allow_null=True))
    def get_asked(self, view: ApprovalsView) -> Any:
        """Return what is asked for."""
        return None if view.asked is None else AskedSerializer(view).data


class MyApprovalsSerializer(ApprovalsSerializer):
    """The same, and whether the caller may approve now."""

    may_approve = serializers.SerializerMethodField()
    why_not = serializers.SerializerMethodField()

    def get_may_approve(self, view: ApprovalsView) -> bool:
        """Return whether an approval of the caller would be taken."""
        return not self.get_why_not(view)

    def get_why_not(self, view: ApprovalsView) -> str:
        """Return why it would not; empty where it would."""
        return str(self.context["lacks_role"]) or view.refusal(str(self.context["user"]))
