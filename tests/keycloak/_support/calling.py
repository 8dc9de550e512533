"""A small model on a whole platform, which programs call with tokens of a realm."""

import httpx

from tests.e2e.harness import Platform, until
from tests.keycloak._support.realm import AUDIENCE, Realm

ISSUER = "corp"
IN_FORCE_S = 5.0
_SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: linear}
spec:
  access: ACCESS
  predictor:
    model:
      modelFormat: {name: onnx}
      storageUri: models:/linear/1
"""
_INPUT = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}


def serve(platform: Platform, model: bytes, access: str) -> None:
    """Serve the model to callers that the access policy lets in; once it is served, change the policy."""
    folder = platform.home.parent
    with platform.client() as client:
        if not client.all("models"):
            (folder / "linear.onnx").write_bytes(model)
            platform.fairlead("models", "push", "linear.onnx", "--name", "linear", "--wait")
    (folder / "linear.yaml").write_text(_SERVICE.replace("ACCESS", access))
    platform.fairlead("services", "apply", "-f", "linear.yaml", "--wait")


def accept(platform: Platform, realm: Realm) -> None:
    """Let gateways accept tokens of the realm, unless they do."""
    with platform.client() as client:
        if not client.all("issuers"):
            platform.fairlead("issuers", "create", ISSUER, "--issuer", realm.issuer, "--audience", AUDIENCE)


def call(platform: Platform, token: str | None) -> httpx.Response:
    """Return the answer of one inference."""
    url = f"http://{platform.gateway}/serving/default/linear/v2/models/linear/infer"
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.post(url, json=_INPUT, headers=headers, timeout=30)


def becomes(platform: Platform, token: str, status: int, *, within_s: float = 30.0) -> None:
    """Wait until calls with the token get this status."""
    until(lambda: call(platform, token).status_code == status, within_s=within_s, what=f"status {status}")
