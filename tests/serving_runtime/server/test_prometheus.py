"""A real Prometheus scrapes two replicas and adds their native histograms up."""

import math
import time
from pathlib import Path

import httpx

from serving_runtime.telemetry.metrics.histogram import NATIVE_SCHEMA
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.prometheus import Prometheus, prometheus
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

NAME = "fairlead_inference_request_duration_us"
REQUESTS = 150
BUCKET = 2 ** (2**-NATIVE_SCHEMA)


def classic_bucket(rank: float, *replicas: ServerProcess) -> tuple[float, float]:
    """Return the edges of the classic bucket that holds a quantile over the replicas, from their text pages."""
    cumulative: dict[float, float] = {}
    for replica in replicas:
        for line in replica.metrics_page().splitlines():
            if line.startswith(f"{NAME}_bucket"):
                edge = float(line.partition('le="')[2].partition('"')[0])
                cumulative[edge] = cumulative.get(edge, 0) + float(line.rpartition(" ")[2])
    low = 0.0
    for edge in sorted(cumulative):
        if cumulative[edge] >= rank * cumulative[math.inf]:
            return low, edge
        low = edge
    raise AssertionError("no bucket holds the rank")


def test_prometheus_adds_up_the_native_histograms_of_two_replicas(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "models" / "mlp" / "1" / "model.onnx")
    content = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0] * 8}]}
    with (
        server(tmp_path / "models", scratch=tmp_path) as first,
        server(tmp_path / "models", scratch=tmp_path) as second,
        httpx.Client() as client,
    ):
        for replica in (first, second):
            for _ in range(REQUESTS):
                assert client.post(f"{replica.url}/v2/models/mlp/infer", json=content).status_code == 200
        targets = [f"127.0.0.1:{replica.metrics}" for replica in (first, second)]
        try:
            with prometheus(targets, tmp_path) as scraper:
                until_counted(scraper)
                assert scraper.number(f"histogram_count(sum({NAME}))") == 2 * REQUESTS
                assert scraper.number("sum(nv_inference_request_success)") == 2 * REQUESTS
                for rank in (0.5, 0.99):
                    low, high = classic_bucket(rank, first, second)
                    found = scraper.number(f"histogram_quantile({rank}, sum({NAME}))")
                    assert low / BUCKET <= found <= high * BUCKET
        except MissingPartError as missing:
            skip_or_fail(missing)


def until_counted(scraper: Prometheus) -> None:
    """Wait until both replicas were scraped."""
    deadline = time.monotonic() + 30
    while scraper.number(f"histogram_count(sum({NAME}))") < 2 * REQUESTS:
        assert time.monotonic() < deadline, scraper.query("up")
        time.sleep(0.1)
