import copy
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import ServiceSpec, parse_service, refuse_on
from deployments.domain.service_file.scaling import Scaling
from integrations.clusters.base import Resources

FILE: dict[str, Any] = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "digits", "namespace": "vision"},
    "spec": {
        "predictor": {
            "minReplicas": 2,
            "maxReplicas": 2,
            "model": {
                "modelFormat": {"name": "onnx"},
                "storageUri": "models:/digits@champion",
                "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
                "resources": {"requests": {"cpu": "500m", "memory": "1.5Gi"}},
                "config": {"max_batch_size": 8},
            },
        },
        "rollout": {"policy": "careful"},
    },
}
MODEL = "spec.predictor.model"


def _with(path: str, value: object) -> dict[str, Any]:
    document = copy.deepcopy(FILE)
    *parents, last = path.split(".")
    inner = document
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return document


def test_a_service_file_is_read_field_by_field() -> None:
    spec = parse_service(FILE)
    assert spec == ServiceSpec(
        namespace="vision",
        name="digits",
        storage_uri="models:/digits@champion",
        scaling=Scaling(2, 2),
        env={"OMP_NUM_THREADS": "1"},
        resources=Resources(cpu_cores=0.5, memory_bytes=3 * 2**29),
        model_config={"max_batch_size": 8},
        policy="careful",
    )
    assert spec.follows_alias


def test_the_least_a_file_can_say() -> None:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/3"}
    head = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    spec = parse_service({**head, "spec": {"predictor": {"model": model}}}, namespace="default", name="digits")
    assert (spec.namespace, spec.name, spec.scaling, spec.policy) == ("default", "digits", Scaling(1, 1), None)
    assert not spec.follows_alias


@pytest.mark.parametrize(("metric", "target"), [("cpu", 70), ("pods/queue_depth", 3)])
def test_what_the_local_cluster_does_not_measure_is_refused_there(metric: str, target: float) -> None:
    document = _with("spec.predictor.scaleMetric", metric)
    document["spec"]["predictor"] |= {"minReplicas": 1, "maxReplicas": 3, "scaleTarget": target}
    spec = parse_service(document)
    refuse_on("kubernetes", spec)
    with pytest.raises(InvalidInput, match=f"scaleMetric is {metric}, which the local cluster does not") as refused:
        refuse_on("local", spec)
    assert refused.value.field == "spec.predictor.scaleMetric"


@pytest.mark.parametrize(
    ("document", "field", "sentence"),
    [
        pytest.param("x", None, "the service file is a text; expected an object", id="no object"),
        pytest.param(_with("apiVersion", "v1"), "apiVersion", "expected serving.kserve.io/v1beta1", id="apiVersion"),
        pytest.param(_with("kind", "Pod"), "kind", "kind is 'Pod'; expected InferenceService", id="kind"),
        pytest.param(
            _with("kind", "InferenceGraph") | {"apiVersion": "serving.kserve.io/v1alpha1"},
            "kind",
            "kind is 'InferenceGraph'; expected InferenceService",
            id="another kind, with its apiVersion",
        ),
        pytest.param(_with("metadata.name", "Digits"), "metadata.name", "expected a DNS label", id="no DNS label"),
        pytest.param(_with("metadata.name", "d" * 58), "metadata.name", "may have 57", id="too long for revisions"),
        pytest.param(_with("metadata.namespace", "a/b"), "metadata.namespace", "a DNS label", id="namespace"),
        pytest.param(_with("metadata.labels", {}), "metadata.labels", "not a field that", id="labels"),
        pytest.param(_with("spec.storage", {}), "spec.storage", "spec.storage is not", id="an unknown part"),
        pytest.param(
            _with("spec.predictor.scaleMetricType", "Utilization"),
            "spec.predictor.scaleMetricType",
            "is not a field",
            id="what a metric is a part of",
        ),
        pytest.param(
            _with("spec.predictor.canaryTrafficPercent", 10),
            "spec.predictor.canaryTrafficPercent",
            "a policy says the weights of a rollout, and spec.rollout.policy names it",
            id="a share that KServe has in the service's file",
        ),
        pytest.param(
            _with(f"{MODEL}.protocolVersion", "v2"),
            f"{MODEL}.protocolVersion",
            "V1 and V2 are served side by side, so leave it out",
            id="KServe's choice of a protocol",
        ),
        pytest.param(_with("spec.predictor.minReplicas", -1), "spec.predictor.minReplicas", "from 0", id="below zero"),
        pytest.param(
            _with("spec.predictor.maxReplicas", 1), "spec.predictor.maxReplicas", "less than min", id="maxReplicas"
        ),
        pytest.param(
            _with(f"{MODEL}.modelFormat", {"name": "pickle"}), f"{MODEL}.modelFormat.name", "serves onnx", id="format"
        ),
        pytest.param(
            _with(f"{MODEL}.storageUri", "digits"), f"{MODEL}.storageUri", "models:/NAME/VERSION", id="no URI"
        ),
        pytest.param(_with(f"{MODEL}.storageUri", None), f"{MODEL}.storageUri", "is missing", id="no model"),
        pytest.param(
            _with(f"{MODEL}.resources", {"limits": {"memory": "1Gi"}}),
            f"{MODEL}.resources.limits.memory",
            "write memory under requests",
            id="limits",
        ),
        pytest.param(
            _with(f"{MODEL}.resources", {"requests": {"cpu": "two"}}),
            f"{MODEL}.resources.requests.cpu",
            "is 'two'; expected a quantity such as 500m or 2",
            id="a quantity in words",
        ),
        pytest.param(
            _with(f"{MODEL}.resources", {"requests": {"memory": "1Gb"}}),
            f"{MODEL}.resources.requests.memory",
            "expected a quantity such as 512Mi",
            id="an unknown unit",
        ),
        pytest.param(
            _with(f"{MODEL}.env", [{"name": "A B", "value": ""}]), f"{MODEL}.env[0].name", "no name", id="env name"
        ),
        pytest.param(
            _with(f"{MODEL}.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            f"{MODEL}.env[1].name",
            "there twice",
            id="a variable that is there twice",
        ),
        pytest.param(
            _with(f"{MODEL}.env", [{"name": "A", "valueFrom": {}}]),
            f"{MODEL}.env[0].valueFrom.secretKeyRef",
            "missing",
            id="valueFrom",
        ),
        pytest.param(
            _with(f"{MODEL}.env", [{"name": "A", "value": "x" * 30_000}]),
            f"{MODEL}.env",
            "has 30001 characters in all; a process is given at most 30000",
            id="more variables than a process takes",
        ),
        pytest.param(_with(f"{MODEL}.config", [1]), f"{MODEL}.config", "is a list", id="config that is no object"),
        pytest.param(_with(f"{MODEL}.config", {"name": "x"}), f"{MODEL}.config.name", "cannot be set", id="model name"),
        pytest.param(_with("spec.rollout", {}), "spec.rollout.policy", "spec.rollout.policy is missing", id="policy"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence_that_names_the_field(
    document: object, field: str | None, sentence: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(document)
    assert sentence in caught.value.message
    assert caught.value.field == field
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("address", "field"), [({"name": "letters"}, "metadata.name"), ({"namespace": "default"}, "metadata.namespace")]
)
def test_a_file_put_at_another_address_is_refused(address: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput, match="give both the same") as caught:
        parse_service(FILE, **address)
    assert caught.value.field == field


def test_all_faults_of_a_file_are_named_at_once() -> None:
    document = _with("metadata.name", "Digits")
    spec = document["spec"]
    spec["predictor"] |= {"minReplicas": -1, "logger": {"url": "nowhere"}, "timeOut": 3}
    model = spec["predictor"]["model"]
    model |= {"modelFormat": {"name": "caffe"}, "storageURI": model.pop("storageUri"), "config": {"name": "x"}}
    model["resources"] = {"requests": {"cpu": "much", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 2}}
    spec["transformer"] = {"containers": [{"image": "a b", "args": 3}]}
    with pytest.raises(InvalidInput) as refusal:
        parse_service(document)
    assert refusal.value.field == "metadata.name"
    assert refusal.value.message.startswith("the service file has 12 faults; the first: metadata.name is 'Digits'")
    assert sorted(line.split(" ")[0] for line in refusal.value.details) == [
        "metadata.name",
        "spec.predictor.logger.url",
        "spec.predictor.minReplicas",
        "spec.predictor.model.config.name",
        "spec.predictor.model.modelFormat.name",
        "spec.predictor.model.resources.limits.nvidia.com/gpu",
        "spec.predictor.model.resources.requests.cpu",
        "spec.predictor.model.storageURI",
        "spec.predictor.model.storageUri",
        "spec.predictor.timeOut",
        "spec.transformer.containers[0].args",
        "spec.transformer.containers[0].image",
    ]
    assert any(line.endswith("did you mean storageUri?") for line in refusal.value.details)
    assert any(line.endswith("did you mean timeout?") for line in refusal.value.details)
