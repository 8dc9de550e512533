"""The chart's rules of objectives, evaluated by a real Prometheus over the metrics of a whole platform under load.

Its windows of 5 min to 3 d take too long for a test. All durations of the rules are divided by `FASTER`, with the
interval of evaluations: the window of 5 min is 5 s, of an hour a minute. All else of the rules stays as it is.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.charts.chart import objects
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, until
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.prometheus import Discovery, Prometheus, prometheus

pytestmark = pytest.mark.e2e

FASTER = 60
SECONDS = {"m": 60, "h": 3600, "d": 86400}
WELL, BROKEN, SLOW = 0.0, 7.0, 8.0
MODEL = f"""
import time

from fairlead_python import FP32

def predict(order: FP32[1]) -> FP32[1]:
    if order[0] == {BROKEN}:
        raise ValueError("broken")
    if order[0] == {SLOW}:
        time.sleep(0.3)
    return order
"""
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: NAME}
spec:
  predictor:
    minReplicas: 1
    model: {modelFormat: {name: python}, storageUri: models:/orders/1}
  objectives:
    availability: 99
    latency: {percent: 95, withinMs: 200}
"""
FAILING = (WELL, BROKEN, WELL, WELL, SLOW, WELL, BROKEN, WELL, WELL, WELL)
"""Two of ten fail, 20 times what the objective allows; of eight answers one is slow, 2.5 times what is allowed."""
WINDOWS = ("5m", "30m", "1h", "6h", "3d")
NAMES = ("failing", "working")
FAST, MIDDLE, SLOWLY = "FairleadErrorBudgetBurnsFast", "FairleadErrorBudgetBurns", "FairleadErrorBudgetBurnsSlowly"
FIRING = {
    (FAST, "availability", "critical"),
    (MIDDLE, "availability", "critical"),
    (SLOWLY, "availability", "warning"),
    (SLOWLY, "latency", "warning"),
}
WITHIN_S = 60.0


def faster(expression: str) -> str:
    """Return an expression of the chart with its windows, and its interval of evaluations, divided by `FASTER`."""
    shorter = re.sub(r"\[(\d+)([mhd])\]", lambda of: f"[{int(of[1]) * SECONDS[of[2]] // FASTER}s]", expression)
    return shorter.replace("60 * sum_over_time(", f"{60 // FASTER} * sum_over_time(")


def rules() -> list[dict[str, Any]]:
    """Return the group of the objectives' rules, as the chart renders it for a cluster, but for its durations."""
    (found,) = (each for each in objects({"monitoring": {"alerts": True}}) if each["kind"] == "PrometheusRule")
    (group,) = (each for each in found["spec"]["groups"] if each["name"] == "fairlead-objectives")
    assert group["interval"] == "1m"
    assert not any("for" in rule for rule in group["rules"])
    return [{**group, "interval": "1s", "rules": [{**rule, "expr": faster(rule["expr"])} for rule in group["rules"]]}]


class Sender:
    """Sends requests of a pattern to a service, one after the other.

    Attributes:
        answers: how many requests had each status.
    """

    def __init__(self, platform: Platform, service: str, pattern: tuple[float, ...]) -> None:
        self.pattern = pattern
        self.answers: dict[int, int] = {}
        self._url = f"http://{platform.gateway}/serving/default/{service}/v2/models/{service}/infer"
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send until the block ends."""
        thread = threading.Thread(target=self._send)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _send(self) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._ended.is_set():
                for order in self.pattern:
                    tensor = {"name": "order", "datatype": "FP32", "shape": [1], "data": [order]}
                    status = client.post(self._url, json={"inputs": [tensor]}).status_code
                    self.answers[status] = self.answers.get(status, 0) + 1
                    self._ended.wait(0.02)


def firing(scraper: Prometheus, service: str) -> set[tuple[str, str, str]]:
    """Return the alerts of a service that fire now."""
    found = scraper.query(f'ALERTS{{alertstate="firing",namespace="default",service="{service}",team="default"}}')
    return {(each["metric"]["alertname"], each["metric"]["objective"], each["metric"]["severity"]) for each in found}


def burn(scraper: Prometheus, service: str, window: str) -> dict[str, float]:
    """Return the recorded burn rates of a service by objective."""
    found = scraper.query(f'fairlead:objective_burn:rate{window}{{service="{service}",team="default"}}')
    return {each["metric"]["objective"]: float(each["value"][1]) for each in found}


def serve(platform: Platform) -> None:
    """Serve the model as two services with the same objectives, which start at the same time."""
    folder = platform.home.parent
    (folder / "orders" / "1").mkdir(parents=True)
    (folder / "orders" / "config.pbtxt").write_text('backend: "python"\n')
    (folder / "orders" / "1" / "model.py").write_text(MODEL)
    platform.fairlead("models", "push", "orders", "--name", "orders", "--wait")
    for name in NAMES:
        (folder / "service.yaml").write_text(SERVICE.replace("NAME", name))
        platform.fairlead("services", "apply", "-f", "service.yaml")
    with platform.client() as client:
        for name in NAMES:
            until(lambda name=name: client.get(f"services/default/{name}")["phase"] == "Ready", WITHIN_S, name)


def test_alerts_fire_for_the_service_that_fails_and_for_no_other(tmp_path: Path) -> None:
    with started(tmp_path, "--allow-python-models") as platform:
        serve(platform)
        discovery = Discovery(f"{platform.url}/api/v1/prometheus/targets", platform.home / "token")
        web = {"job_name": "web", "scrape_interval": "1s", "scrape_timeout": "1s", "honor_labels": True}
        web["static_configs"] = [{"targets": [f"127.0.0.1:{platform.port}"]}]
        failing, working = Sender(platform, "failing", FAILING), Sender(platform, "working", (WELL,))
        try:
            with (
                prometheus([], tmp_path, discovery=discovery, jobs=[web], rules=rules()) as scraper,
                failing.running(),
                working.running(),
            ):
                until(lambda: firing(scraper, "failing") == FIRING, WITHIN_S, "the alerts of the failing service")
                for window in WINDOWS:
                    found = burn(scraper, "failing", window)
                    assert found["availability"] == pytest.approx(20, rel=0.1), window
                    assert found["latency"] == pytest.approx(2.5, rel=0.3), f"{window}; a busy machine is slow too"
                    assert burn(scraper, "working", window)["availability"] == 0, window
                assert firing(scraper, "working") == set()
                failing.pattern = (WELL,)
                until(
                    lambda: not any(name == FAST for name, *_ in firing(scraper, "failing")),
                    WITHIN_S,
                    "the end of the fastest alert",
                )
        except MissingPartError as missing:
            skip_or_fail(missing)
    assert set(failing.answers) == {200, 500}
    assert set(working.answers) == {200}
