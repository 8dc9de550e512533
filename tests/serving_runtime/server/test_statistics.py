"""The statistics extension over HTTP, member by member."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from onnx import TensorProto

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

DURATIONS = {
    "success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss",
}  # fmt: skip


def rows(count: int, value: int = 1) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": "INT64", "shape": [count, 1], "data": [value] * count}]}


@pytest.mark.feature("E9")
def test_statistics_count_requests_rows_runs_and_failures(tmp_path: Path) -> None:
    root = tmp_path / "models"
    onnx_models.picky(onnx_models.configure(root / "picky", "max_batch_size: 4") / "1" / "model.onnx")
    onnx_models.identity(root / "other" / "1" / "model.onnx", TensorProto.FLOAT)
    with (
        server(root, scratch=tmp_path) as process,
        httpx.Client(base_url=f"{process.url}/v2/models") as client,
    ):
        statuses = [
            client.post("/picky/infer", json=body).status_code for body in (rows(3), rows(3), rows(1), rows(1, 99))
        ]
        assert statuses == [200, 200, 200, 500]
        assert client.post("/picky/infer", json=rows(9)).status_code == 400
        (found,) = client.get("/picky/stats").json()["model_stats"]
        assert [stats["name"] for stats in client.get("/stats").json()["model_stats"]] == ["other", "picky"]
        assert client.get("/picky/versions/1/stats").json()["model_stats"] == [found]
        assert client.get("/picky/versions/2/stats").status_code == 404
    assert (found["name"], found["version"]) == ("picky", "1")
    assert (found["inference_count"], found["execution_count"]) == (7, 3)
    assert found["last_inference"] > 1_700_000_000_000
    durations = found["inference_stats"]
    assert set(durations) == DURATIONS
    assert {name: duration["count"] for name, duration in durations.items()} == {
        "success": 3, "fail": 2, "queue": 3, "compute_input": 3, "compute_infer": 3, "compute_output": 3,
        "cache_hit": 0, "cache_miss": 0,
    }  # fmt: skip
    parts = sum(durations[name]["ns"] for name in ("queue", "compute_input", "compute_infer", "compute_output"))
    assert 0 < durations["compute_infer"]["ns"] < parts <= durations["success"]["ns"]
    assert durations["fail"]["ns"] > 0
    assert [(batch["batch_size"], batch["compute_infer"]["count"]) for batch in found["batch_stats"]] == [
        (1, 1),
        (3, 2),
    ]
    assert all(batch["compute_infer"]["ns"] > 0 for batch in found["batch_stats"])
    assert found["response_stats"] == {}
    (memory,) = found["memory_usage"]
    assert (memory["type"], memory["id"]) == ("CPU", 0)
    assert memory["byte_size"] >= 0
