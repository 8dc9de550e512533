"""`pods` of a cluster file: which pod fields services may set there."""

from dataclasses import replace
from typing import Any

import pytest

from clusters.domain.cluster_file import parse_cluster
from clusters.domain.pods import AllowedPods
from common.errors import InvalidInput
from tests.deployments._support.cluster_files import LEAST, MOST


def test_nothing_is_allowed_without_it() -> None:
    assert parse_cluster(LEAST).pods == AllowedPods()


def test_each_field_is_read() -> None:
    expected = AllowedPods((), ("serving",), ("registry",), {"pool": ("models",)}, ("dedicated",), ("example.com",))
    assert parse_cluster(MOST).pods == replace(expected, queue_names=("models", "urgent"))
    assert parse_cluster({**LEAST, "pods": {"serviceAccountNames": ["a"]}}).pods.service_accounts == ("a",)


@pytest.mark.parametrize(
    ("pods", "field", "sentence"),
    [
        ({"hostNetwork": True}, "pods.hostNetwork", "is not a field"),
        ({"priorityClassNames": "serving"}, "pods.priorityClassNames", "is no list of texts"),
        ({"nodeSelector": {"pool": "models"}}, "pods.nodeSelector.pool", "is no list of texts"),
        ({"labelPrefixes": ["fairlead/"]}, "pods.labelPrefixes", "of Fairlead or Kubernetes"),
        ({"labelPrefixes": ["app.kubernetes.io"]}, "pods.labelPrefixes", "of Fairlead or Kubernetes"),
    ],
)
def test_wrong_fields_are_refused_by_name(pods: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_cluster({**LEAST, "pods": pods})
    assert (caught.value.field, sentence in caught.value.message) == (field, True), caught.value


def test_accounts_that_are_no_services_identify_no_pod() -> None:
    with pytest.raises(InvalidInput, match="identify their service to the control plane") as caught:
        parse_cluster(
            {**LEAST, "controlPlaneUrl": "https://fairlead.example.com", "pods": {"serviceAccountNames": ["a"]}}
        )
    assert caught.value.field == "pods.serviceAccountNames"
