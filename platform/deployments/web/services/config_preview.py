"""Configuration preview: the effect of a changed service file, shown before it is applied. Called by views."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from accounts.auth.access import is_administrator
from accounts.auth.permissions import page_actor, page_token
from common.errors import FairleadError
from common.files.editor.text import lines_between, text_of
from common.files.plans import Outcome
from deployments.models import InferenceService
from deployments.services.files.file_preflight import service_planned
from deployments.views.shapes import Plan
from deployments.web.rollouts.contract_changes import may_accept, planned_with_breaks


def looked_at(request: HttpRequest, service: InferenceService, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of `_config_plan.html` for a changed file: the effects, or why it cannot be applied."""
    token, actor, now = page_token(request), page_actor(request), timezone.now()

    def planned(accept: str | None) -> Plan:
        arguments: dict[str, Any] = {"namespace": service.namespace, "name": service.name, "actor": actor, "now": now}
        arguments |= {"may_grant_egress": is_administrator(token)}
        return service_planned(token, document=document, **arguments, accept=accept).plan

    try:
        plan, breaks = planned_with_breaks(planned)
    except FairleadError as error:
        return {"refusal": error.message, "further": error.further}
    return {
        "plan": plan,
        "breaks": breaks,
        "may_accept": may_accept(request, service.namespace),
        "lines": lines_between(text_of(service.document), text_of(document)),
        "changes": plan.outcome is not Outcome.UNCHANGED or document != service.document,
        "document": json.dumps(document),
        "was": digest_of(service),
    }


def digest_of(service: InferenceService) -> str:
    """Return a digest of a service's file, to detect a change."""
    return hashlib.sha256(json.dumps(service.document, sort_keys=True).encode()).hexdigest()
