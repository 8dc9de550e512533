"""Rows that tests of feedback begin with: kept answers, as the reconciler stores them, and labels."""

import json
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from common.encryption import seal_bytes
from deployments.models import InferenceService
from feedback.domain.labels import NewLabel
from feedback.models import Answer, Kept
from feedback.services.join import labels_join
from feedback.services.labels import Taken, labels_take

NOON = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)


def keep(service: InferenceService, **fields: Any) -> Kept:
    """Return what is kept of a service's answers."""
    defaults = {"share_percent": 100, "days": 30, "max_rows": 1000, "max_bytes": 1 << 30}
    return Kept.objects.create(service=service, created_at=NOON, created_by="test", **{**defaults, **fields})


def answer(
    service: InferenceService,
    request_id: str,
    top: Sequence[Sequence[object]] = ((3, 0.9),),
    *,
    revision: str = "digits-00001",
    at: datetime = NOON,
    outputs: Mapping[str, Any] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Answer:
    """Return a kept answer; `outputs` are tensors in V2's JSON form."""
    content = json.dumps({"outputs": outputs, "inputs": {}}).encode() if outputs is not None else b""
    return Answer.objects.create(
        service=service,
        request_id=request_id,
        revision=revision,
        version=1,
        at=at,
        top=[list(row) for row in top],
        sealed=seal_bytes(zlib.compress(content), purpose="kept answers") if content else b"",
        parameters=dict(parameters or {}),
        bytes=100,
    )


def send(service: InferenceService, labels: Mapping[str, object], now: datetime = NOON) -> Taken:
    """Take labels by request id."""
    batch = [NewLabel(request_id, value, None) for request_id, value in labels.items()]
    return labels_take(namespace=service.namespace, name=service.name, labels=batch, actor="test", now=now)


def join(now: datetime = NOON + timedelta(hours=1)) -> int:
    """Join what is due at a time."""
    return labels_join(clock=lambda: now)
