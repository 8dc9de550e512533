"""What tests of a whole platform do again and again: a model brought by the pages, a service asked through Envoy."""

from pathlib import Path

import httpx
from playwright.sync_api import Page, expect

from tests.browser._support.uploads import drop
from tests.browser.whole.desk import WAIT_MS
from tests.e2e.harness import Platform, until

WAIT_S = WAIT_MS / 1000


def linear_file(folder: Path, content: bytes, number: int = 1) -> Path:
    """Write a version of the model `linear`."""
    file = folder / f"linear-{number}.onnx"
    file.write_bytes(content)
    return file


def bring(page: Page, file: Path, number: int = 1) -> None:
    """Drop a model's file as its first version, or as the next one; return on its page when it is READY."""
    model = file.stem.partition("-")[0]
    page.goto("/models/" if number == 1 else f"/models/{model}/")
    drop(page, file)
    if number == 1:
        page.get_by_label("Name of the model").fill(model)
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url(f"**/models/{model}/versions/{number}/")
    expect(page.get_by_text("READY", exact=True)).to_be_visible(timeout=WAIT_MS)  # without a reload by hand


def ask_linear(platform: Platform, service: str) -> httpx.Response:
    """Send a service of `linear_model` a row."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    url = f"http://{platform.gateway}/serving/default/{service}/v2/models/{service}/infer"
    return httpx.post(url, json={"inputs": [tensor]}, timeout=20, trust_env=False)


def answering(platform: Platform, service: str, requests: int = 20) -> set[str]:
    """Return which revisions answered; every request has to be answered."""
    answers = [ask_linear(platform, service).raise_for_status() for _ in range(requests)]
    return {answer.headers["fairlead-revision"] for answer in answers}


def answered_by(platform: Platform, service: str, *revisions: str) -> None:
    """Wait until requests are answered by these revisions alone, and by each of them."""
    until(lambda: answering(platform, service) == set(revisions), WAIT_S, f"answers by {' and '.join(revisions)}")
