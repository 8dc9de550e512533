"""Secrets over the API: written, never returned, and kept while services use them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from common.encryption import unseal
from common.errors import Conflict, InvalidInput
from deployments.models import InferenceService
from deployments.services import service_apply, service_plan
from integrations.clusters.base import SecretKeyRef
from sealed_secrets.models import SealedSecret, SealedValue
from sealed_secrets.selectors import PURPOSE, values_of
from sealed_secrets.services import MAX_VALUE_CHARACTERS
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/secrets/default/hugging-face"
BODY = {"name": "hugging-face", "values": {"token": "hf_planted", "user": "alice"}}
ENV = [{"name": "MODEL_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}]


def document(platform: Platform, env: Any = ENV) -> dict[str, Any]:
    found = platform.document(policy=None)
    found["spec"]["predictor"]["model"]["env"] = env
    return found


def apply(platform: Platform, env: Any = ENV) -> None:
    service_apply(document=document(platform, env), namespace=None, name=None, actor="alice", now=platform.clock())


def test_a_secret_is_created_changed_and_deleted_and_its_values_are_never_returned(
    api: Callable[..., APIClient],
) -> None:
    client = api(Scope.ADMIN)
    made = client.post("/api/v1/secrets", BODY)
    assert made.status_code == 201
    assert (made.json()["keys"], made.json()["services"]) == (["token", "user"], [])
    sealed = SealedValue.objects.get(key="token").sealed
    assert "planted" not in sealed
    assert unseal(sealed, purpose=PURPOSE) == "hf_planted"
    changed = client.patch(ADDRESS, {"values": {"token": " hf_second\n", "user": None, "new": "1"}})
    assert changed.json()["keys"] == ["new", "token"]
    assert values_of(namespace="default", refs=[SecretKeyRef("hugging-face", "token")]) == {
        "hugging-face": {"token": " hf_second\n"}
    }, "what was sent and nothing else"
    listed = client.get("/api/v1/secrets?namespace=default")
    assert listed.json()["results"] == [client.get(ADDRESS).json()]
    assert client.delete(ADDRESS).status_code == 204
    assert not SealedValue.objects.exists()
    said = b"".join(each.content for each in (made, changed, listed))
    assert not [word for word in (b"planted", b"hf_second", b"values") if word in said]
    entries = AuditEntry.objects.filter(action__startswith="secret.").order_by("pk")
    assert [(each.action, each.target) for each in entries] == [
        (f"secret.{verb}", "secrets/default/hugging-face") for verb in ("create", "change", "delete")
    ]
    assert entries[1].detail == {"set": ["new", "token"], "removed": ["user"]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"values": {}}, "values has no key"),
        ({"values": {"a b": "planted"}}, "values has the key 'a b'"),
        ({"values": {"a": ""}}, ""),
        ({"values": {"a": "planted" + "x" * MAX_VALUE_CHARACTERS}}, ""),
        ({"values": {"a": ["planted"]}}, ""),
        ({"values": "planted"}, ""),
        ({"name": "No/Name"}, "name is 'No/Name'"),
        ({"namespace": "No Name"}, ""),
        ({"value": "planted"}, "value is not a field here"),
    ],
)
def test_a_wrong_secret_is_refused_without_its_value(
    body: dict[str, Any], words: str, api: Callable[..., APIClient]
) -> None:
    answer = api(Scope.ADMIN).post("/api/v1/secrets", {**BODY, **body})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert b"planted" not in answer.content
    assert not SealedSecret.objects.exists()


def test_the_same_name_twice_is_a_conflict_and_the_same_request_again_is_not(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    first, again = (client.post("/api/v1/secrets", BODY, headers={"Idempotency-Key": "1"}) for _ in range(2))
    assert (first.json(), again.json()) == (again.json(), first.json())
    assert client.post("/api/v1/secrets", BODY).status_code == 409


def test_a_secret_in_use_stays_and_the_refusal_names_the_services(
    api: Callable[..., APIClient], platform: Platform
) -> None:
    client = api(Scope.ADMIN)
    client.post("/api/v1/secrets", BODY)
    platform.version(1)
    apply(platform)
    assert client.get(ADDRESS).json()["services"] == ["default/digits"]
    refused = client.delete(ADDRESS)
    assert refused.status_code == 409
    assert "secret default/hugging-face is used by default/digits" in refused.json()["error"]["message"]
    refused = client.patch(ADDRESS, {"values": {"token": None}})
    assert "key token of secret default/hugging-face is used by default/digits" in refused.json()["error"]["message"]
    assert client.patch(ADDRESS, {"values": {"user": None}}).status_code == 200, "no service names that key"
    apply(platform, [])
    assert client.delete(ADDRESS).status_code == 204


def test_a_file_that_names_a_missing_secret_or_key_is_refused_in_one_sentence(
    api: Callable[..., APIClient], platform: Platform
) -> None:
    platform.version(1)
    for words in ("secret hugging-face, which namespace default does not have; create it by ", "which has user; set"):
        with pytest.raises(InvalidInput, match=words) as refused:
            apply(platform)
        with pytest.raises(InvalidInput, match=words):
            service_plan(
                document=document(platform), namespace="default", name="digits", actor="alice", now=platform.clock()
            )
        assert refused.value.message.startswith("spec.predictor.model.env: MODEL_TOKEN names ")
        api(Scope.ADMIN).post("/api/v1/secrets", {**BODY, "values": {"user": "alice"}})
    api(Scope.ADMIN).patch(ADDRESS, {"values": {"token": "hf_planted"}})
    apply(platform)


def test_the_cluster_gets_the_values_before_the_desired_state_and_new_ones_with_the_next_turn(
    api: Callable[..., APIClient], platform: Platform
) -> None:
    api(Scope.ADMIN).post("/api/v1/secrets", BODY)
    platform.version(1)
    apply(platform)
    platform.turn()
    assert platform.cluster.secrets == {("default", "digits"): {"hugging-face": {"token": "hf_planted"}}}
    assert "hf_planted" not in repr(platform.cluster.applied)
    InferenceService.objects.update(settled=F("changes"))
    api(Scope.ADMIN).patch(ADDRESS, {"values": {"token": "hf_second"}})
    assert not InferenceService.objects.filter(settled=F("changes")).exists(), "the next sweep turns to it"
    platform.turn()
    assert platform.cluster.secrets[("default", "digits")] == {"hugging-face": {"token": "hf_second"}}


def test_a_value_that_cannot_be_decrypted_is_said_on_the_page_of_the_service(
    api: Callable[..., APIClient], platform: Platform
) -> None:
    api(Scope.ADMIN).post("/api/v1/secrets", BODY)
    platform.version(1)
    apply(platform)
    SealedValue.objects.update(sealed="gAAAA")
    with pytest.raises(Conflict, match="secret default/hugging-face, key token: the value of a secret cannot be read"):
        platform.turn()
    assert "secret default/hugging-face, key token" in InferenceService.objects.get().refusal
