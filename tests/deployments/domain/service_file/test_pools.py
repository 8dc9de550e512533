"""Model pools in a service file: pools, and services in them."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import (
    ModelPool,
    ServiceSpec,
    content_of,
    file_saying,
    model_pool_json,
    parse_service,
    stored_model_pool,
)
from deployments.domain.service_file.clusters import refuse_on
from deployments.domain.service_file.scaling import Scaling
from integrations.clusters.base import Resources

MODEL: dict[str, Any] = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
GIB = 1 << 30


def document(predictor: dict[str, Any], namespace: str = "vision", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits", "namespace": namespace},
        "spec": {"predictor": predictor, **spec},
    }


def read(predictor: dict[str, Any], **spec: Any) -> ServiceSpec:
    return parse_service(document(predictor, **spec))


def refusal(predictor: dict[str, Any], **spec: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(predictor, **spec)
    return caught.value.message


def test_a_pool_has_replicas_and_a_memory_budget() -> None:
    spec = read(
        {
            "minReplicas": 2,
            "maxReplicas": 8,
            "modelPool": {
                "memoryBudget": "6Gi",
                "sharedWith": ["speech"],
                "resources": {"requests": {"cpu": 2, "memory": "8Gi"}},
            },
        }
    )
    assert spec.model_pool == ModelPool(6 * GIB, ("speech",))
    assert (spec.scaling, spec.resources) == (Scaling(2, 8), Resources(2, 8 * GIB))
    assert (spec.storage_uri, spec.pool, spec.is_imported) == ("", "", False)
    assert stored_model_pool(model_pool_json(spec.model_pool)) == ModelPool(6 * GIB)


def test_models_get_four_fifths_of_the_requested_memory() -> None:
    spec = read({"modelPool": {"resources": {"requests": {"memory": "10Gi"}}}})
    assert spec.model_pool == ModelPool(8 * GIB)


@pytest.mark.parametrize(
    ("own", "shared", "namespace", "takes"),
    [
        ("vision", (), "vision", True),
        ("vision", (), "speech", False),
        ("vision", ("speech",), "speech", True),
        ("vision", ("*",), "sales", True),
    ],
)
def test_whose_services_a_pool_takes(own: str, shared: tuple[str, ...], namespace: str, takes: bool) -> None:
    assert ModelPool(1, shared).takes(own, namespace) is takes


@pytest.mark.parametrize(
    ("pool", "more", "spec", "sentence"),
    [
        ({}, {}, {}, "memoryBudget is missing; say how much memory"),
        ({"memoryBudget": "a lot"}, {}, {}, "memoryBudget"),
        (
            {"memoryBudget": "2Gi", "resources": {"requests": {"memory": "2Gi"}}},
            {},
            {},
            "memoryBudget is not less than the requested memory",
        ),
        ({"memoryBudget": "1Gi", "sharedWith": "speech"}, {}, {}, "sharedWith is no list"),
        ({"memoryBudget": "1Gi", "sharedWith": ["A/B"]}, {}, {}, "sharedWith"),
        ({"memoryBudget": "1Gi", "env": []}, {}, {}, "env is of the services in a pool"),
        ({"memoryBudget": "1Gi", "size": 3}, {}, {}, "size is not a field"),
        ({"memoryBudget": "1Gi"}, {"pool": "warm"}, {}, "pool is"),
        ({"memoryBudget": "1Gi"}, {"minReplicas": 0}, {}, "minReplicas is 0, but a model pool answers for services"),
        ({"memoryBudget": "1Gi"}, {"model": MODEL}, {}, "modelPool and spec.predictor.model exclude each other"),
        ({"memoryBudget": "1Gi"}, {"logger": {"url": "http://a"}}, {}, "logger is of the services in a pool"),
        ({"memoryBudget": "1Gi"}, {}, {"rollout": {"policy": "careful"}}, "rollout is of the services in a pool"),
        ({"memoryBudget": "1Gi"}, {}, {"limits": {"requestsPerSecond": 1}}, "limits is of the services in a pool"),
        ({"memoryBudget": "1Gi", "resources": {"limits": {"nvidia.com/gpu": 1}}}, {}, {}, "run on CPUs"),
    ],
)
def test_what_a_pool_cannot_have(
    pool: dict[str, Any], more: dict[str, Any], spec: dict[str, Any], sentence: str
) -> None:
    assert sentence in refusal({"modelPool": pool, **more}, **spec)


@pytest.mark.parametrize(("said", "pool"), [("warm", "vision/warm"), ("speech/warm", "speech/warm")])
def test_a_service_in_a_pool_has_no_replicas(said: str, pool: str) -> None:
    spec = read({"pool": said, "model": {**MODEL, "config": {"max_batch_size": 8}}}, rollout={"policy": "careful"})
    assert (spec.pool, spec.scaling, spec.model_config) == (pool, Scaling(1, 1), {"max_batch_size": 8})
    assert (spec.policy, spec.storage_uri) == ("careful", "models:/digits/1")


@pytest.mark.parametrize(
    ("predictor", "model", "spec", "sentence"),
    [
        ({"pool": "a/b/c"}, {}, {}, "expected the name of a model pool, or NAMESPACE/NAME"),
        ({"pool": "/warm"}, {}, {}, "expected the name of a model pool, or NAMESPACE/NAME"),
        ({"minReplicas": 2}, {}, {}, "minReplicas is of replicas, and those are the pool's"),
        ({"scaleMetric": "rps", "maxReplicas": 3}, {}, {}, "maxReplicas is of replicas"),
        ({"nodeSelector": {"a": "b"}}, {}, {}, "nodeSelector is of replicas"),
        ({}, {"resources": {"requests": {"cpu": 1}}}, {}, "resources is of replicas"),
        ({}, {"env": [{"name": "A", "value": "b"}]}, {}, "env cannot be honoured in a model pool"),
        ({}, {"egress": True}, {}, "egress cannot be honoured in a model pool"),
        ({"logger": {"url": "http://a"}}, {}, {}, "logger cannot be honoured in a model pool"),
        ({}, {}, {"placement": {"replicas": "spread"}}, "placement is of replicas"),
    ],
)
def test_what_a_service_leaves_to_its_pool(
    predictor: dict[str, Any], model: dict[str, Any], spec: dict[str, Any], sentence: str
) -> None:
    assert sentence in refusal({"pool": "warm", "model": {**MODEL, **model}, **predictor}, **spec)


def test_an_image_is_in_no_pool() -> None:
    container = {"image": f"example.org/predictor@sha256:{1:064}"}
    assert "pool is for models" in refusal({"pool": "warm", "containers": [container]})


def test_a_file_moves_into_a_pool_and_back() -> None:
    own = document({"minReplicas": 2, "maxReplicas": 4, "model": MODEL})
    pooled = document({"pool": "warm", "model": MODEL})
    for before, after in ((own, pooled), (pooled, own)):
        changed = file_saying(before, parse_service(before), content_of(parse_service(after)))
        assert parse_service(changed) == parse_service(after)


def test_a_pool_goes_back_to_another_budget() -> None:
    before = document({"modelPool": {"memoryBudget": "2Gi", "sharedWith": ["speech"]}})
    content = replace(content_of(parse_service(before)), model_pool=ModelPool(GIB))
    after = parse_service(file_saying(before, parse_service(before), content))
    assert after.model_pool == ModelPool(GIB, ("speech",))


def test_on_kubernetes_a_pool_is_shared_with_namespaces_by_name() -> None:
    everybodys = read({"modelPool": {"memoryBudget": "1Gi", "sharedWith": ["speech", "*"]}})
    refuse_on("local", everybodys)
    with pytest.raises(InvalidInput, match="on Kubernetes a pool is shared with namespaces by name"):
        refuse_on("kubernetes", everybodys)


@pytest.mark.parametrize(
    "predictor",
    [
        {"pool": "warm", "model": MODEL},
        {"pool": "speech/warm", "model": MODEL},
        {"pool": "warm", "model": MODEL, "minReplicas": 0, "maxReplicas": 4},
        {"modelPool": {"memoryBudget": "1Gi", "sharedWith": ["speech"]}},
    ],
)
def test_pools_run_on_every_cluster(predictor: dict[str, Any]) -> None:
    for kind in ("local", "kubernetes"):
        refuse_on(kind, read(predictor))
