"""A service that asks for keys, on a whole platform: nobody without one calls it, and a revoked one ends within 5 s."""

import json
from pathlib import Path

import grpc
import httpx
import pytest
import tritonclient.grpc as triton

from tests.e2e.harness import Platform, until

pytestmark = pytest.mark.e2e

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: guarded}
spec:
  access: ACCESS
  predictor:
    model:
      modelFormat: {name: onnx}
      storageUri: models:/guarded/1
"""
IN_FORCE_S = 5


def apply(platform: Platform, access: str) -> None:
    (platform.home.parent / "guarded.yaml").write_text(SERVICE.replace("ACCESS", access))
    platform.fairlead("services", "apply", "-f", "guarded.yaml", "--wait")


def status(platform: Platform, key: str = "") -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.get(
        f"http://{platform.gateway}/serving/default/guarded/v2/models/guarded", headers=headers, timeout=30
    ).status_code


def new_key(platform: Platform, name: str, *options: str) -> str:
    made = platform.fairlead("keys", "create", name, "--service", "default/guarded", *options, "-o", "json")
    return str(json.loads(made.stdout)["token"])


def ready_over_grpc(platform: Platform, key: str) -> grpc.StatusCode:
    with triton.InferenceServerClient(platform.gateway) as client:
        try:
            named = {"fairlead-service": "default/guarded", "authorization": f"Bearer {key}"}
            assert client.is_model_ready("guarded", headers=named)
        except triton.InferenceServerException as error:
            return error.status()
    return grpc.StatusCode.OK


def test_keys_open_a_service_until_they_are_revoked(platform: Platform, models: Path) -> None:
    platform.fairlead("models", "push", str(next(models.glob("*.onnx"))), "--name", "guarded", "--wait")
    apply(platform, "public")
    assert status(platform) == 200
    apply(platform, "authenticated")
    until(lambda: status(platform) == 401, what="the gateway asks for a key")
    first = new_key(platform, "first")
    until(lambda: status(platform, first) == 200, within_s=IN_FORCE_S, what="the first key")
    assert ready_over_grpc(platform, first) is grpc.StatusCode.OK

    platform.fairlead("keys", "rotate", "first", "--overlap", "0")
    until(lambda: status(platform, first) == 401, within_s=IN_FORCE_S, what="the rotated key ends")
    assert "UNAUTHENTICATED" in str(ready_over_grpc(platform, first))
    second = new_key(platform, "second")
    until(lambda: status(platform, second) == 200, within_s=IN_FORCE_S)
    apply(platform, "{keys: [third]}")
    until(lambda: status(platform, second) == 403, what="only the named key")
    assert "PERMISSION_DENIED" in str(ready_over_grpc(platform, second))
    third = new_key(platform, "third")
    until(lambda: status(platform, third) == 200, within_s=IN_FORCE_S)

    platform.fairlead("keys", "limit", "third", "1")
    until(lambda: 429 in [status(platform, third) for _ in range(5)], within_s=IN_FORCE_S, what="the key's limit")
    platform.fairlead("keys", "limit", "third", "none")
    until(lambda: {status(platform, third) for _ in range(9)} == {200}, within_s=IN_FORCE_S, what="no limit")

    kept = json.dumps([path.read_text(errors="replace") for path in (platform.home / "cluster").glob("*.json")])
    assert second not in kept
    assert '"d"' not in kept, "the gateway's files have public keys only"
    platform.fairlead("services", "delete", "guarded")
