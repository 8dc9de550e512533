"""Exchanges of a stable and a shadow revision as taps record them, and a shadow rollout that compared some."""

import base64
import struct
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.utils import timezone

from deployments import mapping
from deployments.domain.policy import parse_policy, policy_json
from deployments.models import InferenceService, Rollout
from deployments.reconcile.participants import comparison
from deployments.reconcile.participants.taps import Taken
from integrations.clusters.base import Exchange
from tests import scenes

SHADOW = {
    "name": "shadow",
    "strategy": "shadow",
    "steps": [{"weight": 50, "analysis": {"minRequests": 10, "comparison": {"minPairs": 100, "topK": 1}}}],
}
SCORES = [0.1, 0.7, 0.2]


def fp32(name: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a tensor of one row as a tap writes it."""
    return {"name": name, "datatype": "FP32", "shape": [1, len(values)], "data": list(values)}


def not_finite(name: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a tensor of one row as a tap writes one that JSON has no numbers for."""
    content = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    return fp32(name, values) | {"parameters": {"encoding": "base64"}, "data": [content]}


def exchange(
    request_id: str,
    revision: str,
    at: float,
    *outputs: dict[str, Any],
    asked: Sequence[float] = (1.0, 2.0),
    **more: Any,
) -> Exchange:
    """Return one side of an exchange; `response` and `error_code` of an error are given in place of `outputs`."""
    more = {"response": {"outputs": list(outputs)}} | more
    return Exchange(request_id, revision, "1", at, {"inputs": [fp32("image", asked)]}, **more)


def exchanges(count: int, at: float, *, of: str = "digits") -> list[Exchange]:
    """Return both sides of so many requests: most agree, some differ, a few badly."""
    found = []
    for number in range(count):
        noise = 10.0 ** -(3 + number % 6)
        shadow = [fp32("scores", [score + noise / 100 for score in SCORES])]
        more: dict[str, Any] = {}
        if number % 37 == 5:
            shadow = [fp32("scores", [0.6, 0.3, 0.1])]
        if number == 50:
            shadow = [not_finite("scores", [0.1, float("nan"), 0.2])]
        if number == 60:
            shadow, more = [], {"response": {"error": "the model ran out of memory"}, "error_code": "INTERNAL"}
        asked = [float(number), 0.5]
        found.append(exchange(f"r{number}", f"{of}-00001", at + number, fp32("scores", SCORES), asked=asked))
        found.append(exchange(f"r{number}", f"{of}-00002", at + number, *shadow, asked=asked, **more))
    return found


def compared_shadow(of: InferenceService, count: int = 300) -> Rollout:
    """Return a shadow rollout of the service that compared so many answers at its only step."""
    row = scenes.rollout(of)
    row.policy_document, row.weight, row.mirror = policy_json(parse_policy(SHADOW)), 0, 50
    row.save(update_fields=["policy_document", "weight", "mirror"])
    now = timezone.now()
    state = mapping.rollout_state(row)
    begun = comparison.carry_on(row, state, Taken(), confirmed=True, now=now - timedelta(hours=1))
    assert begun is not None
    begun.run.save()
    taken = Taken(exchanges(count, begun.run.started_at.timestamp(), of=of.name))
    compared = comparison.carry_on(row, state, taken, confirmed=True, now=now)
    assert compared is not None
    compared.run.save()
    return row
