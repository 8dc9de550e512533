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
    with pytest.raises(InvalidInput, match="no images; name the folder of a program in workingDir") as refused:
        refuse_on("local", parse_service(document(kind)))
    assert refused.value.field == f"spec.{kind}.containers[0].image"


def test_a_program_is_part_of_each_replica_of_the_local_cluster(kind: CompanionKind) -> None:
    program = {"command": ["python3", "serve.py"], "workingDir": "/srv/programs/tokenizer-3"}
    whole = document(kind)
    whole["spec"][kind.value] = {"containers": [program]}
    its = parse_service(whole).companions[kind]
    assert (its.working_dir, its.image, its.command) == ("/srv/programs/tokenizer-3", "", ("python3", "serve.py"))
    recorded = replace(its, image=f"tokenizer-3@sha256:{1:064}")
    assert stored_companion(as_json(recorded, kind), kind) == recorded
    refuse_on("local", parse_service(whole))
    with pytest.raises(InvalidInput, match="is for services on the local cluster: pods run images") as refused:
        refuse_on("kubernetes", parse_service(whole))
    assert refused.value.field == f"spec.{kind}.containers[0].workingDir"


@pytest.mark.parametrize(
    ("of_companion", "of_container", "field"),
    [
        ({"minReplicas": 2}, {}, "minReplicas"),
        ({"maxReplicas": 3}, {}, "maxReplicas"),
        ({"scaleMetric": "cpu"}, {}, "scaleMetric"),
        ({"scaleTarget": 50}, {}, "scaleTarget"),
        ({}, {"ports": [{"containerPort": 9000}]}, "containers[0].ports"),
        ({}, {"image": "example.org/tokenizer:1"}, "containers[0].image"),
        ({}, {"command": []}, "containers[0].command"),
        ({}, {"workingDir": "programs/tokenizer-3"}, "containers[0].workingDir"),
        ({}, {"workingDir": "/srv/programs/../etc"}, "containers[0].workingDir"),
        ({}, {"workingDir": "/srv/programs/tokenizer-3/"}, "containers[0].workingDir"),
        ({}, {"workingDir": "/srv/programs/Tokenizer 3"}, "containers[0].workingDir"),
        ({}, {"workingDir": 3}, "containers[0].workingDir"),
    ],
)
def test_what_a_program_cannot_have_is_refused_by_name(
    kind: CompanionKind, of_companion: dict[str, Any], of_container: dict[str, Any], field: str
) -> None:
    program = {"command": ["./serve"], "workingDir": "/srv/programs/tokenizer-3", **of_container}
    whole = document(kind)
    whole["spec"][kind.value] = {**of_companion, "containers": [program]}
    with pytest.raises(InvalidInput) as refused:
        parse_service(whole)
    assert refused.value.field == f"spec.{kind}.{field}"


@pytest.mark.parametrize("name", ["alibi", "aix", "art"])
def test_a_type_of_kserves_explainers_is_refused_by_name(kind: CompanionKind, name: str) -> None:
    typed = document(kind)
    typed["spec"][kind.value] = {name: {"type": "SquareAttack"}}
    with pytest.raises(InvalidInput) as refused:
        parse_service(typed)
    assert refused.value.field == f"spec.{kind}.{'containers' if kind is TRANSFORMER else name}"
