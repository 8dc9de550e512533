import hashlib
from collections.abc import Callable
from typing import Any

from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from registry.models import ModelVersion

Api = Callable[..., APIClient]


def test_an_upload_is_known_by_the_sha256_it_announces(
    api: Api, store_folder: object, linear_model: Callable[..., bytes]
) -> None:
    client, content = api(Scope.WRITE), linear_model()

    def push(body: bytes, **headers: str) -> Any:
        return client.post(
            "/api/v1/models/digits/versions?filename=model.onnx",
            body,
            content_type="application/octet-stream",
            headers={"Idempotency-Key": "k1", **headers},
        )

    sha256 = {"X-Content-SHA256": hashlib.sha256(content).hexdigest()}
    refused = push(content)
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "X-Content-SHA256")
    assert push(content, **sha256).status_code == 201
    again = push(content, **sha256)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    other = linear_model(seed=1)
    assert push(other, **{"X-Content-SHA256": hashlib.sha256(other).hexdigest()}).status_code == 409
    assert ModelVersion.objects.count() == 1
