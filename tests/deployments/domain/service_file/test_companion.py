"""`spec.transformer` and `spec.explainer` of a service file."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import Companion, content_of, file_saying, parse_service, stored_companion
from deployments.domain.service_file import companion_json as as_json
from deployments.domain.service_file.clusters import refuse_on
from integrations.clusters.base import CompanionKind, Resources

CONTAINER: dict[str, Any] = {"name": "kserve-container", "image": "example.org/tokenizer:1"}
TRANSFORMER, EXPLAINER = CompanionKind.TRANSFORMER, CompanionKind.EXPLAINER

pytestmark = pytest.mark.parametrize("kind", CompanionKind)


def document(kind: CompanionKind, name: str = "digits", **said: Any) -> dict[str, Any]:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": {"model": model}, kind.value: {"containers": [CONTAINER], **said}},
    }


def read(kind: CompanionKind, **said: Any) -> Companion:
    return parse_service(document(kind, **said)).companions[kind]


def test_a_container_and_how_it_scales(kind: CompanionKind) -> None:
    container = {
        **CONTAINER,
        "command": ["python", "-m", "tokenizer"],
        "args": ["--lower-case"],
        "env": [{"name": "LANGUAGE", "value": "en"}],
        "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
        "ports": [{"containerPort": 9000, "protocol": "TCP"}, {"name": "h2c", "containerPort": 9001}],
    }
    found = read(kind, containers=[container], minReplicas=2, maxReplicas=4, scaleMetric="memory", scaleTarget=60)
    assert found == Companion(
        image="example.org/tokenizer:1",
        command=("python", "-m", "tokenizer"),
        args=("--lower-case",),
        env={"LANGUAGE": "en"},
        resources=Resources(0.25, 64 << 20),
        min_replicas=2,
        max_replicas=4,
        scale_metric=found.scale_metric,
        scale_percent=60.0,
        http_port=9000,
        grpc_port=9001,
    )
    assert found.scale_metric == "memory"
    assert stored_companion(as_json(found, kind), kind) == found


def test_what_is_left_out_is_as_kserve_has_it(kind: CompanionKind) -> None:
    found = read(kind)
    assert (found.min_replicas, found.max_replicas) == (1, 1)
    assert (found.http_port, found.grpc_port, found.scale_metric, found.scale_percent) == (8080, 8081, "cpu", 80.0)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        pytest.param({"containers": []}, "containers", id="no container"),
        pytest.param({"containers": [CONTAINER, CONTAINER]}, "containers", id="two containers"),
        pytest.param({"containers": [{"name": "x"}]}, "containers[0].image", id="no image"),
        pytest.param({"containers": [{**CONTAINER, "image": "a b"}]}, "containers[0].image", id="no image's name"),
        pytest.param({"containers": [{**CONTAINER, "args": "x"}]}, "containers[0].args", id="args of one text"),
        pytest.param({"containers": [{**CONTAINER, "volumeMounts": []}]}, "containers[0].volumeMounts", id="volumes"),
        pytest.param(
            {"containers": [{**CONTAINER, "ports": [{"name": "admin", "containerPort": 9000}]}]},
            "containers[0].ports[0].name",
            id="another port",
        ),
        pytest.param({"minReplicas": 3, "maxReplicas": 2}, "maxReplicas", id="less at most than at least"),
        pytest.param({"scaleMetric": "concurrency"}, "scaleMetric", id="a metric of predictors"),
        pytest.param({"canaryTrafficPercent": 10}, "canaryTrafficPercent", id="a field that nobody reads"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(kind: CompanionKind, changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_service(document(kind, **changed))
    assert refused.value.field == f"spec.{kind}.{field}"


def test_a_name_that_leaves_no_room_for_its_objects_is_refused(kind: CompanionKind) -> None:
    longest = {TRANSFORMER: 45, EXPLAINER: 47}[kind]
    parse_service(document(kind, name="a" * longest))
    with pytest.raises(InvalidInput, match=f"with an? {kind} it may have {longest}"):
        parse_service(document(kind, name="a" * (longest + 1)))


def test_the_way_back_writes_it_into_the_file_or_takes_it_out(kind: CompanionKind) -> None:
    there = parse_service(document(kind))
    content = replace(content_of(there), transformer=None, explainer=None)
    without = file_saying(document(kind), there, content)
    assert kind.value not in without["spec"]
    older = Companion(image="example.org/tokenizer:0")
    own: dict[str, Any] = {kind.value: older}
    again = replace(content_of(there), **own)
    assert parse_service(file_saying(without, parse_service(without), again)).companions == {kind: older}


def test_the_local_cluster_refuses_it_by_name(kind: CompanionKind) -> None:
    refuse_on("kubernetes", parse_service(document(kind)))
    with pytest.raises(InvalidInput, match=f"spec.{kind} cannot be honoured on the local cluster") as refused:
        refuse_on("local", parse_service(document(kind)))
    assert refused.value.field == f"spec.{kind}"


@pytest.mark.parametrize("name", ["alibi", "aix", "art"])
def test_a_type_of_kserves_explainers_is_refused_by_name(kind: CompanionKind, name: str) -> None:
    typed = document(kind)
    typed["spec"][kind.value] = {name: {"type": "SquareAttack"}}
    with pytest.raises(InvalidInput) as refused:
        parse_service(typed)
    assert refused.value.field == f"spec.{kind}.{'containers' if kind is TRANSFORMER else name}"
