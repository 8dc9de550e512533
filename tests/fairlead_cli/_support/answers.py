"""Answers of the API, as the command line gets them."""

from typing import Any

BUILD: dict[str, Any] = {
    "id": 7,
    "model": "m",
    "version": 1,
    "cluster": "local",
    "order": {"target": "onnx", "precision": "int8", "accelerator": "", "timeout_s": 3600},
    "status": "PENDING",
    "reason": "",
    "progress": {},
    "report": {},
    "built": None,
    "created_at": "2026-01-01",
    "created_by": "ann",
}


TRIAL: dict[str, Any] = {
    "id": 8,
    "model": "m",
    "version": 1,
    "cluster": "local",
    "status": "PENDING",
    "reason": "",
    "stage": "",
    "report": {},
    "created_at": "2026-01-01",
    "created_by": "ann",
}


TRIED: dict[str, Any] = {
    **TRIAL,
    "status": "DONE",
    "report": {"status": 200, "load_ms": 41.0, "first_ms": 2.0, "infer_ms": 0.5, "runs": 5, "labels": {}},
    "answer": {"outputs": [{"name": "label", "datatype": "INT64", "shape": [1], "data": [7]}]},
}


TUNING: dict[str, Any] = {
    "id": 5,
    "model": "m",
    "version": 1,
    "service": None,
    "cluster": "local",
    "order": {"max_latency_p99_ms": 5.0, "budget_s": 60},
    "status": "PENDING",
    "reason": "",
    "progress": {},
    "report": None,
    "created_at": "2026-01-01",
    "created_by": "ann",
}


USER: dict[str, Any] = {"name": "bob", "active": True, "roles": {"red": "viewer"}, "provider": None}


INVITATION = {"user": "bob", "url": "https://a.example/signin/invitation/x", "expires_at": "2026-11-26T12:00:00Z"}


def listed(*rows: Any) -> dict[str, Any]:
    return {"next": None, "results": list(rows)}


def gpu(index: int, *profiles: str) -> dict[str, Any]:
    return {"index": index, "slices": [{"profile": profile} for profile in profiles]}


REPARTITION: dict[str, Any] = {
    "id": 5,
    "cluster": "k",
    "node": "gpu-1",
    "product": "H100-80GB",
    "wanted": "2 x 3g.40gb",
    "why": "with GPUs 0, 1 of gpu-1 cut anew, 2 of 2 replicas find a slice",
    "gpus": [0, 1],
    "before": [gpu(0, *["1g.10gb"] * 7), gpu(1, *["1g.10gb"] * 7), gpu(2, "7g.80gb")],
    "after": [gpu(0, "3g.40gb", *["1g.10gb"] * 4), gpu(1, "3g.40gb", *["1g.10gb"] * 4), gpu(2, "7g.80gb")],
    "leaving": ["default/digits-00001-a"],
    "phase": "Proposed",
    "since": "2026-01-01",
    "message": "waits for somebody to approve it",
    "held": "",
    "proposed_at": "2026-01-01",
    "proposed_by": "ann",
    "decided_at": None,
    "decided_by": "",
    "decision_reason": "",
    "aborted_at": None,
    "aborted_by": "",
    "abort_reason": "",
}
