import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AnsweredRequest, ApiToken, AuditEntry
from accounts.tasks import forget_answers
from registry.models import RegisteredModel
from tests import scenes

Api = Callable[..., APIClient]
pytestmark = pytest.mark.django_db


def post(client: APIClient, body: dict[str, Any], key: str = "k1", path: str = "models") -> Any:
    return client.post(f"/api/v1/{path}", body, headers={"Idempotency-Key": key})


def test_the_same_request_again_does_nothing_and_gets_the_first_answer(api: Api) -> None:
    client = api(Scope.WRITE)
    first = post(client, {"name": "digits"})
    again = post(client, {"name": "digits"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert AuditEntry.objects.filter(action="model.create").count() == 1
    assert client.post("/api/v1/models", {"name": "digits"}).status_code == 409


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param({"name": "other"}, "models", id="another body"),
        pytest.param({"name": "digits"}, "teams", id="another address"),
        pytest.param({"name": "digits"}, "models?x=1", id="another query"),
    ],
)
def test_the_same_key_for_another_request_is_refused(api: Api, body: dict[str, str], path: str) -> None:
    client = api(Scope.ADMIN)
    post(client, {"name": "digits"})
    answer = post(client, body, path=path)
    assert (answer.status_code, answer.json()["error"]["field"]) == (409, "Idempotency-Key")
    assert "was used for another request" in answer.json()["error"]["message"]
    assert RegisteredModel.objects.count() == 1


def test_keys_of_different_users_are_different_keys(api: Api) -> None:
    assert post(api(Scope.WRITE), {"name": "one"}).status_code == 201
    assert post(api(Scope.WRITE, "bob"), {"name": "two"}).status_code == 201


def test_a_refused_request_leaves_its_key_free(api: Api) -> None:
    client = api(Scope.WRITE)
    assert post(client, {"name": "!"}).status_code == 400
    assert post(api(Scope.READ, "bob"), {"name": "digits"}).status_code == 403
    assert post(client, {"name": "digits"}).status_code == 201


def test_who_lost_the_right_gets_no_kept_answer(api: Api) -> None:
    client = api(Scope.WRITE)
    post(client, {"name": "digits"})
    ApiToken.objects.update(scope=Scope.READ)
    assert post(client, {"name": "digits"}).status_code == 403


def test_after_a_day_the_key_is_free_and_the_answer_forgotten(api: Api) -> None:
    client = api(Scope.WRITE)
    post(client, {"name": "digits"})
    post(client, {"name": "kept"}, key="k2")
    AnsweredRequest.objects.filter(key="k1").update(created_at=timezone.now() - timedelta(hours=24))
    assert post(client, {"name": "other"}).status_code == 201
    AnsweredRequest.objects.filter(key="k1").update(created_at=timezone.now() - timedelta(hours=24))
    forget_answers()
    assert list(AnsweredRequest.objects.values_list("key", flat=True)) == ["k2"]


def test_a_secret_is_not_kept(api: Api) -> None:
    admin = api(Scope.ADMIN)
    secret = post(admin, {"name": "ci"}, path="tokens").json()["token"]
    again = post(admin, {"name": "ci"}, path="tokens")
    assert (again.status_code, again.json()["error"]["field"]) == (409, "Idempotency-Key")
    assert ApiToken.objects.filter(name="ci").count() == 1
    assert not AnsweredRequest.objects.filter(body__contains=secret).exists()


@pytest.mark.parametrize("key", ["", "x" * 256, "with space", "tab\t", "é"])
def test_a_key_that_is_none_is_refused(api: Api, key: str) -> None:
    answer = post(api(Scope.WRITE), {"name": "digits"}, key=key)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "Idempotency-Key")


def test_every_post_documents_the_header() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    # A pod's exchanges carry their own identities, and what comes twice is kept once.
    posts = {
        path: item["post"] for path, item in schema["paths"].items() if "post" in item and "/workloads/" not in path
    }
    assert len(posts) >= 8
    for path, operation in posts.items():
        assert "Idempotency-Key" in [one["name"] for one in operation.get("parameters", [])], path


@pytest.mark.django_db(transaction=True)
def test_of_requests_at_the_same_time_one_acts_and_all_get_its_answer(api: Api) -> None:
    live = scenes.service()
    scenes.model_version(2)
    client = api(Scope.WRITE)
    headers = client._credentials
    answers: list[Any] = []
    together = threading.Barrier(4)

    def send() -> None:
        own = APIClient()
        own.credentials(**headers)
        together.wait()
        try:
            answers.append(post(own, {"version": "2"}, path=f"services/default/{live.name}/rollouts"))
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [201] * 4
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 3
