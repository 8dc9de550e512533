"""What a replica asks for: CPU, memory, and one GPU or one slice of one."""

import copy
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import parse_service, refuse_on
from integrations.clusters.base import Resources
from tests.deployments._support.service_files import FILE

LIMITS = "spec.predictor.model.resources.limits"


def saying(**resources: Any) -> dict[str, Any]:
    document = copy.deepcopy(FILE)
    document["spec"]["predictor"]["model"]["resources"] = resources
    return document


@pytest.mark.parametrize(
    "asked", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-7g.141gb.shared"]
)
def test_one_gpu_or_slice_is_asked_for_as_kubernetes_has_it(asked: str) -> None:
    found = parse_service(saying(requests={"cpu": 2}, limits={asked: 1})).resources
    assert found == Resources(cpu_cores=2, accelerator=asked)
    assert parse_service(saying(limits={asked: "1"})).resources.accelerator == asked


@pytest.mark.parametrize(
    ("limits", "field", "told"),
    [
        pytest.param({"nvidia.com/gpu": 2}, "nvidia.com/gpu", "a replica has one", id="two for a replica"),
        pytest.param({"nvidia.com/gpu": True}, "nvidia.com/gpu", "a replica has one", id="no number"),
        pytest.param(
            {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 1}, "nvidia.com/gpu", "sees one", id="a GPU and a slice"
        ),
        pytest.param({"nvidia.com/mig-big": 1}, "nvidia.com/mig-big", "no GPU known here", id="no profile"),
        pytest.param({"amd.com/gpu": 1}, "amd.com/gpu", "Fairlead can honour", id="another vendor's"),
        pytest.param({"memory": "1Gi"}, "memory", "under requests", id="a limit that requests say"),
    ],
)
def test_other_limits_are_refused_by_their_names(limits: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(saying(limits=limits))
    assert caught.value.field == f"{LIMITS}.{field}"
    assert told in caught.value.message


def test_which_gpu_may_be_left_open() -> None:
    assert parse_service(saying(limits={"nvidia.com/gpu": "auto"})).resources == Resources(accelerator="auto")
    with pytest.raises(InvalidInput):
        parse_service(saying(limits={"nvidia.com/mig-1g.10gb": "auto"}))


def test_a_transformer_gets_no_gpu() -> None:
    document = copy.deepcopy(FILE)
    container = {"image": "t", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    document["spec"]["transformer"] = {"containers": [container]}
    with pytest.raises(InvalidInput) as caught:
        parse_service(document)
    assert "a transformer computes on CPUs" in caught.value.message


def test_the_local_cluster_refuses_a_gpu_in_one_sentence() -> None:
    spec = parse_service(saying(limits={"nvidia.com/gpu": 1}))
    with pytest.raises(InvalidInput) as caught:
        refuse_on("local", spec)
    assert caught.value.field == f"{LIMITS}.nvidia.com/gpu"
    assert "choose a Kubernetes cluster with GPU nodes" in caught.value.message
    refuse_on("kubernetes", spec)
