"""`/api/v1/rollouts/ID/approvals` and `/reject`: approvals and rejections of a rollout."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import require
from accounts.auth.permissions import actor_of, caller_token
from common.errors import NotPermitted
from deployments import selectors, services
from deployments.api.approval_serializers import CommentSerializer, MyApprovalsSerializer, ReasonedSerializer, said
from deployments.api.serializers import RolloutSerializer
from deployments.selectors.permissions import OfRollout
from deployments.selectors.rollouts.approvals import NEEDED


class RolloutApprovalsView(OfRollout, APIView):
    """Approvals of one rollout."""

    @extend_schema(responses=MyApprovalsSerializer)
    def get(self, request: Request, rollout_id: int) -> Response:
        """List given and required approvals, and whether the caller may approve."""
        return Response(self._shown(request, rollout_id))

    @idempotent()
    @extend_schema(request=CommentSerializer, responses={201: MyApprovalsSerializer})
    def post(self, request: Request, rollout_id: int) -> Response:
        """Approve the rollout at its current point; valid only for the current artifact, configuration and policy."""
        services.rollout_approve(
            rollout_id=rollout_id,
            approver=caller_token(request).approver,
            comment=said(request),
            actor=actor_of(request),
            now=timezone.now(),
        )
        return Response(self._shown(request, rollout_id), status=201)

    @extend_schema(responses=MyApprovalsSerializer)
    def delete(self, request: Request, rollout_id: int) -> Response:
        """Withdraw the caller's own approval while the rollout waits."""
        services.rollout_withdraw(
            rollout_id=rollout_id, approver=caller_token(request).approver, actor=actor_of(request), now=timezone.now()
        )
        return Response(self._shown(request, rollout_id))

    def _shown(self, request: Request, rollout_id: int) -> Any:
        token, lacks_role = caller_token(request), ""
        try:
            require(token, NEEDED, self.place())
        except NotPermitted as error:
            lacks_role = error.message
        view = selectors.rollout_detail(rollout_id=rollout_id, now=timezone.now()).approvals
        return MyApprovalsSerializer(view, context={"approver": token.approver, "lacks_role": lacks_role}).data


class RolloutRejectView(OfRollout, APIView):
    """Rejection of one rollout."""

    @idempotent()
    @extend_schema(request=ReasonedSerializer, responses=RolloutSerializer)
    def post(self, request: Request, rollout_id: int) -> Response:
        """Reject a rollout that waits for approvals, with a reason. Aborts it."""
        services.rollout_reject(
            rollout_id=rollout_id,
            approver=caller_token(request).approver,
            comment=said(request, ReasonedSerializer),
            actor=actor_of(request),
            now=timezone.now(),
        )
        return Response(RolloutSerializer(selectors.rollout_detail(rollout_id=rollout_id, now=timezone.now())).data)
