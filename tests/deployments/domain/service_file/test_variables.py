"""Variables of a service file: values, and references to secrets."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import (
    ServiceSpec,
    companion_json,
    content_of,
    file_saying,
    parse_service,
    plain_secrets,
    secret_env_json,
    stored_companion,
    stored_secret_env,
)
from deployments.domain.service_file.environment import named_secrets
from integrations.clusters.base import CompanionKind, SecretKeyRef

ENV = "spec.predictor.model.env"
KIND = CompanionKind.TRANSFORMER
REF = {"name": "hugging-face", "key": "token"}
TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": REF}}


def document(*env: dict[str, Any], transformer: dict[str, Any] | None = None) -> dict[str, Any]:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1", "env": list(env)}
    before = {} if transformer is None else {"transformer": {"containers": [{"image": "a:1", "env": [transformer]}]}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"predictor": {"model": model}, **before},
    }


def read(*env: dict[str, Any], transformer: dict[str, Any] | None = None) -> ServiceSpec:
    return parse_service(document(*env, transformer=transformer))


def test_a_reference_is_kept_beside_the_values() -> None:
    spec = read({"name": "LANGUAGE", "value": "en"}, TOKEN, transformer=TOKEN)
    expected = {"HF_TOKEN": SecretKeyRef("hugging-face", "token")}
    assert (spec.env, spec.secret_env) == ({"LANGUAGE": "en"}, expected)
    assert stored_secret_env(secret_env_json(spec.secret_env)) == expected
    assert spec.transformer is not None
    assert (spec.transformer.env, spec.transformer.secret_env) == ({}, expected)
    assert stored_companion(companion_json(spec.transformer, KIND), KIND) == spec.transformer
    assert named_secrets(document(TOKEN, {"name": "A", "value": "b"})) == [REF]
    explained = document({"name": "A", "value": "b"})
    explained["spec"]["explainer"] = {"containers": [{"image": "example.org/shap:1", "env": [TOKEN]}]}
    assert named_secrets(explained) == [REF]


def test_the_content_of_another_revision_is_written_into_the_file() -> None:
    earlier, later = read(TOKEN, {"name": "A", "value": "b"}), document({"name": "HF_TOKEN", "value": "x"})
    changed = file_saying(later, parse_service(later), content_of(earlier))
    assert parse_service(changed) == earlier
    assert file_saying(changed, earlier, content_of(earlier)) == changed


@pytest.mark.parametrize(
    ("entry", "field", "words"),
    [
        ({"name": "A", "valueFrom": {}}, "valueFrom.secretKeyRef", "is missing"),
        ({"name": "A", "value": "x", "valueFrom": {"secretKeyRef": REF}}, "value", "and valueFrom both give the value"),
        (
            {"name": "A", "valueFrom": {"secretKeyRef": {**REF, "name": "../x"}}},
            "valueFrom.secretKeyRef.name",
            "'../x'",
        ),
        ({"name": "A", "valueFrom": {"secretKeyRef": {**REF, "key": ".."}}}, "valueFrom.secretKeyRef.key", "'..'"),
        ({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a"}}}, "valueFrom.secretKeyRef.key", "is missing"),
        (
            {"name": "A", "valueFrom": {"secretKeyRef": {**REF, "optional": True}}},
            "valueFrom.secretKeyRef.optional",
            "",
        ),
        ({"name": "A", "valueFrom": {"configMapKeyRef": REF}}, "valueFrom.secretKeyRef", "is missing"),
    ],
)
def test_a_wrong_reference_is_refused_by_its_field(entry: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(entry)
    assert refused.value.field == f"{ENV}[0].{field}"
    assert words in refused.value.message


def test_the_same_name_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="HF_TOKEN', which is there twice"):
        read(TOKEN, {"name": "HF_TOKEN", "value": "x"})


def test_a_plain_value_under_the_name_of_a_secret_gives_a_warning_without_it() -> None:
    plain = {"name": "HF_TOKEN", "value": "hf_abc"}
    (first, second) = plain_secrets(read(plain, transformer={"name": "MODEL_API_KEY", "value": "abc"}))
    assert first.startswith(f"{ENV} has the value of HF_TOKEN, ")
    assert second.startswith("spec.transformer.containers[0].env has the value of MODEL_API_KEY, ")
    assert "hf_abc" not in first
    others = [{"name": name, "value": "1"} for name in ("MODEL_MAX_TOKENS", "TOKENIZERS_PARALLELISM", "KEYBOARD")]
    assert plain_secrets(read(TOKEN, *others, {"name": "DB_PASSWORD", "value": ""})) == ()
