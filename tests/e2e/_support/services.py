"""Services of a whole platform on this machine: applied by the command line, and asked through the gateway."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import yaml

from tests.e2e.harness import Platform

X = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}


def apply(platform: Platform, name: str, *flags: str, **spec: Any) -> None:
    """Apply a service's file by the command line."""
    head = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"name": name}}
    (platform.home.parent / f"{name}.yaml").write_text(yaml.safe_dump({**head, "spec": spec}))
    platform.fairlead("services", "apply", "-f", f"{name}.yaml", *flags)


def ask(platform: Platform, service: str, path: str = "") -> Any:
    """Return the answer to a request, which has to be one."""
    with clients(platform) as client:
        answer = client.post(f"/{service}{path or infer(service)}", json={"inputs": [X]})
    assert answer.status_code == 200, answer.text
    return answer.json()


def clients(platform: Platform) -> httpx.Client:
    return httpx.Client(base_url=f"http://{platform.gateway}/serving/default", timeout=30, trust_env=False)


def infer(service: str) -> str:
    return f"/v2/models/{service}/infer"


@contextmanager
def asking(platform: Platform, service: str) -> Iterator[list[tuple[int, str, Any]]]:
    """Ask while the block runs; yields status, revision and numbers of each answer."""
    seen: list[tuple[int, str, Any]] = []
    over = threading.Event()

    def work() -> None:
        with clients(platform) as client:
            while not over.wait(0.01):
                answer = client.post(f"/{service}{infer(service)}", json={"inputs": [X]})
                its = answer.json()["outputs"][0]["data"] if answer.status_code == 200 else answer.text
                seen.append((answer.status_code, answer.headers.get("fairlead-revision", ""), its))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join()
