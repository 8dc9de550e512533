"""Serializers of approvals and of the approvals required."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from common.http.request_serializer import RequestSerializer
from deployments.domain.rollout.approvals import Standing
from deployments.views.approvals import ApprovalsView, ApprovalView


class CommentSerializer(RequestSerializer[dict[str, str]]):
    """Optional comment on an approval."""

    comment = serializers.CharField(max_length=1000, required=False, default="", allow_blank=True)


class ReasonedSerializer(RequestSerializer[dict[str, str]]):
    """Required comment on a rejection."""

    comment = serializers.CharField(max_length=1000)


def said(request: Request, form: type[RequestSerializer[dict[str, str]]] = CommentSerializer) -> str:
    """Return the comment in the request's body; raises ValidationError."""
    asked = form(data=request.data)
    asked.is_valid(raise_exception=True)
    return str(asked.validated_data["comment"])


class ApprovalSerializer(serializers.Serializer[ApprovalView]):
    """An approval: what was approved, and whether it is still valid."""

    id = serializers.IntegerField()
    user = serializers.CharField()
    comment = serializers.CharField()
    point = serializers.CharField(help_text="Position in the rollout: `the beginning` or `step 2`.")
    attempt = serializers.IntegerField()
    artifact_digest = serializers.CharField()
    configuration_digest = serializers.CharField()
    policy_digest = serializers.CharField()
    state = serializers.ChoiceField(choices=[standing.value for standing in Standing])
    why = serializers.CharField(help_text="Reason why the approval expired; empty if it did not.")
    given_at = serializers.DateTimeField()


class AskedSerializer(serializers.Serializer[ApprovalsView]):
    """Approvals required at the rollout's current point, and how many are missing."""

    point = serializers.CharField()
    is_awaited = serializers.BooleanField(help_text="Whether the rollout accepts approvals now.")
    approvals = serializers.IntegerField(source="asked.rule.approvals")
    missing = serializers.IntegerField(source="asked.missing")
    four_eyes = serializers.BooleanField(source="asked.rule.four_eyes")
    expires_seconds = serializers.SerializerMethodField()

    def get_expires_seconds(self, view: ApprovalsView) -> float:
        """Return the validity of an approval in seconds."""
        return 0.0 if view.asked is None else view.asked.rule.expires.total_seconds()


class ApprovalsSerializer(serializers.Serializer[ApprovalsView]):
    """Approvals of a rollout: given and required; `asked` is null if none is required."""

    asked = serializers.SerializerMethodField()
    given = ApprovalSerializer(many=True)

    @extend_schema_field(AskedSerializer(allow_null=True))
    def get_asked(self, view: ApprovalsView) -> Any:
        """Return the required approvals."""
        return None if view.asked is None else AskedSerializer(view).data


class MyApprovalsSerializer(ApprovalsSerializer):
    """Approvals of a rollout: given and required, and whether the caller may approve now."""

    may_approve = serializers.SerializerMethodField()
    why_not = serializers.SerializerMethodField()

    def get_may_approve(self, view: ApprovalsView) -> bool:
        """Return whether an approval by the caller would be accepted."""
        return not self.get_why_not(view)

    def get_why_not(self, view: ApprovalsView) -> str:
        """Return why it would be rejected; empty if it would be accepted."""
        return str(self.context["lacks_role"]) or view.refusal(self.context["approver"])
