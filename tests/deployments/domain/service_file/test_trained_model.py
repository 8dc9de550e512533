"""TrainedModel files of KServe."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import as_service, parse_service

FILE: dict[str, Any] = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "TrainedModel",
    "metadata": {"name": "iris", "namespace": "vision"},
    "spec": {
        "inferenceService": "warm",
        "model": {"framework": "sklearn", "storageUri": "models:/iris/3", "memory": "256Mi"},
    },
}


def test_it_is_a_service_in_a_pool() -> None:
    spec = parse_service(as_service(FILE))
    assert (spec.namespace, spec.name, spec.pool) == ("vision", "iris", "vision/warm")
    assert (spec.storage_uri, spec.model_format) == ("models:/iris/3", "sklearn")


@pytest.mark.parametrize("other", [None, [], "TrainedModel", {"kind": "InferenceService", "spec": 3}])
def test_other_files_stay_as_they_are(other: object) -> None:
    assert as_service(other) is other


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"apiVersion": "serving.kserve.io/v1beta1"}, "expected serving.kserve.io/v1alpha1 for a TrainedModel"),
        ({"spec": {}}, "spec.inferenceService is missing"),
        ({"spec": {**FILE["spec"], "inferenceService": "A/B"}}, "spec.inferenceService"),
        ({"spec": {**FILE["spec"], "model": {**FILE["spec"]["model"], "framework": "theano"}}}, "serves onnx"),
        ({"spec": {**FILE["spec"], "model": {**FILE["spec"]["model"], "memory": "much"}}}, "spec.model.memory"),
        ({"spec": {**FILE["spec"], "shards": 3}}, "spec.shards is not a field"),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        as_service({**FILE, **changed})
