"""A namespace moves from one Gateway to another: its service answers at both, and no request is lost."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import NamespaceGateway, Options
from tests.cluster._support.gateway.gateway import Gateway
from tests.cluster._support.removal import remove
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import Traffic, infer_json, model, until

pytestmark = pytest.mark.cluster
_WITHIN_S = 120.0
_PATH = "/serving/default/digits/v2/models/digits/infer"


@pytest.fixture
def old(plane: ControlPlane, tmp_path: Path) -> Iterator[Harness]:
    with harness(plane, tmp_path) as running:
        yield running


@pytest.fixture
def new(plane: ControlPlane, tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(plane, tmp_path / "new")
    gateway.start()
    yield gateway
    gateway.close()


def test_a_service_that_moves_answers_at_both_gateways_and_loses_no_request(old: Harness, new: Gateway) -> None:
    stored = old.store(model(1))
    revision = DesiredRevision("digits-00001", "digits", "1", stored.uri, stored.digest, 1, 100)
    desired = Desired("default", "digits", 1, (revision,))
    further = NamespaceGateway(new.reference, new.url, ("default",))

    def until_confirmed(options: Options) -> KubernetesDriver:
        driver = KubernetesDriver(old.api, options)

        def look() -> bool:
            driver.apply(desired)
            seen = driver.observe("default", "digits")
            return seen.generation == 1 and not seen.message and seen.revisions[0].weight_percent == 100

        until(look, "the gateway of the namespace has confirmed the routes", _WITHIN_S)
        return driver

    until_confirmed(old.options)
    until(lambda: _status(old.gateway.url) == 200, "the old gateway answers", _WITHIN_S)
    assert _status(new.url) == 404
    with Traffic(old.gateway.url, clients=1) as before:
        before.until_sent(20, within_s=60)
        moving = replace(old.options, gateways=(further,), leaving=("default",))
        driver = KubernetesDriver(old.api, moving)
        driver.apply(desired)
        assert driver.observe("default", "digits").revisions[0].weight_percent == 100, (
            "what the old one confirmed holds"
        )
        until_confirmed(moving)
        until(lambda: _status(new.url) == 200, "the new gateway answers", _WITHIN_S)
        before.until_sent(40, within_s=60)
    assert before.failures == []
    with Traffic(new.url, clients=1) as after:
        after.until_sent(20, within_s=60)
        driver = until_confirmed(replace(old.options, gateways=(further,)))
        until(lambda: _status(old.gateway.url) == 404, "the old gateway has let it go", _WITHIN_S)
        after.until_sent(40, within_s=60)
    assert after.failures == []
    remove(driver, "digits", 1, within_s=_WITHIN_S)


def _status(url: str) -> int:
    return httpx.post(f"{url}{_PATH}", content=infer_json(), timeout=20, trust_env=False).status_code
