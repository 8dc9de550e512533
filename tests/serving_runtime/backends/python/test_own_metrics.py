"""Metrics that a model makes are on the server's page, of all its processes together."""

import time
from pathlib import Path

import httpx

from tests.serving_runtime.backends.python.python_repository import PATIENCE_S, repository, serving


def ask(url: str, value: float) -> httpx.Response:
    x = {"name": "x", "datatype": "FP32", "shape": [1], "data": [value]}
    return httpx.post(f"{url}/v2/models/counting/infer", json={"inputs": [x]}, timeout=60)


def test_a_models_metrics_are_shown_until_it_is_unloaded(tmp_path: Path) -> None:
    root = repository(tmp_path / "models", "counting")
    with serving(root, tmp_path, "--model-control-mode=explicit", "--load-model=counting") as served:
        answers = [ask(served.url, value).json()["outputs"][0]["data"][0] for value in (0.5, 5, 50, 500)]
        assert answers == [0.5, 5.5, 55.5, 555.5], "two processes count together"
        lines = served.metrics_page().splitlines()
        labels = 'model="counting",version="1"'
        assert {
            "# HELP seen_total What came in",
            "# TYPE seen_total counter",
            f"seen_total{{{labels}}} 555.5",
            f'height_bucket{{{labels},le="1"}} 1',
            f'height_bucket{{{labels},le="10"}} 2',
            f'height_bucket{{{labels},le="+Inf"}} 4',
            f"height_sum{{{labels}}} 555.5",
            f"height_count{{{labels}}} 4",
            'last{which="the \\"last\\""} 500',
        } <= set(lines)
        assert not [line for line in lines if "passing" in line]
        assert "a counter cannot be incremented by -1.0" in ask(served.url, -1).text
        assert "names that begin with nv_, fairlead_, process_ are the server's own" in ask(served.url, 1e7).text
        httpx.post(f"{served.url}/v2/repository/models/counting/unload", timeout=60).raise_for_status()
        deadline = time.monotonic() + PATIENCE_S  # its processes are ended after the answer
        while "seen_total" in served.metrics_page():
            assert time.monotonic() < deadline
            time.sleep(0.05)
