"""Who may call a service, as its file says it and as it is stored."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import AccessPolicy, access_json, parse_service, stored_access
from integrations.clusters.base import Access


def parsed(access: Any) -> AccessPolicy | None:
    """Return the policy of a file with `spec.access`."""
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    document = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"access": access, "predictor": {"model": model}},
    }
    return parse_service(document).access


@pytest.mark.parametrize(
    ("said", "callers"),
    [
        ("public", None),
        ("authenticated", Access()),
        ({"teams": ["fraud"], "users": ["alice"]}, Access(teams=("fraud",), users=("alice",))),
        ({"keys": ["ci", "nightly", "ci"]}, Access(keys=("ci", "nightly"))),
    ],
)
def test_each_form_is_read_and_stored(said: Any, callers: Access | None) -> None:
    policy = parsed(said)
    assert policy == AccessPolicy(callers)
    assert stored_access(access_json(policy)) == policy


def test_a_file_without_it_says_nothing_and_an_old_service_is_public() -> None:
    assert parsed(None) is None
    assert stored_access(None) == AccessPolicy(None)


@pytest.mark.parametrize(
    "said",
    ["private", {}, {"teams": []}, {"teams": "fraud"}, {"team": ["fraud"]}, {"keys": [""]}, {"users": [7]}, 7],
)
def test_what_is_wrong_is_refused_by_name(said: Any) -> None:
    with pytest.raises(InvalidInput, match=r"spec\.access"):
        parsed(said)
