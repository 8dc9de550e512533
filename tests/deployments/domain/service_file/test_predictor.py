"""`spec.predictor.containers` of a service file: custom predictors."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import (
    ServiceSpec,
    check_env,
    content_of,
    custom_json,
    file_saying,
    parse_service,
    stored_custom,
)
from deployments.domain.service_file.clusters import refuse_on
from deployments.domain.service_file.predictor import CustomPredictor, Protocol
from integrations.clusters.base import Resources

IMAGE = f"example.org/predictor@sha256:{1:064}"
CONTAINER: dict[str, Any] = {"name": "kserve-container", "image": IMAGE}
MODEL: dict[str, Any] = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}


def document(**predictor: Any) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"predictor": predictor},
    }


def read(container: dict[str, Any] | None = None, **predictor: Any) -> ServiceSpec:
    return parse_service(document(containers=[{**CONTAINER, **(container or {})}], **predictor))


def test_a_container_in_place_of_a_model() -> None:
    spec = read(
        {
            "command": ["python", "-m", "predictor"],
            "args": ["--lower-case"],
            "env": [{"name": "LANGUAGE", "value": "en"}],
            "resources": {"requests": {"cpu": "250m"}, "limits": {"nvidia.com/gpu": "1", "cpu": "2"}},
            "ports": [{"containerPort": 9000, "protocol": "TCP"}],
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 9000}},
        },
        protocolVersion="v1",
        egress=True,
        minReplicas=1,
        maxReplicas=3,
    )
    assert spec.custom == CustomPredictor(
        IMAGE, Protocol.V1, ("python", "-m", "predictor"), ("--lower-case",), 9000, "/healthz"
    )
    assert spec.resources == Resources(0.25, accelerator="nvidia.com/gpu")
    assert (spec.env, spec.egress, spec.storage_uri, spec.model_config) == ({"LANGUAGE": "en"}, True, "", {})
    assert stored_custom(custom_json(spec.custom)) == spec.custom
    assert not spec.is_imported
    assert not spec.follows_alias


def test_what_is_left_out_is_v2_at_kserves_port() -> None:
    assert read().custom == CustomPredictor(IMAGE)
    assert stored_custom(custom_json(None)) is None


def test_kserves_variable_says_the_protocol() -> None:
    custom = read({"env": [{"name": "PROTOCOL", "value": "v1"}]}).custom
    assert custom is not None
    assert custom.protocol is Protocol.V1


@pytest.mark.parametrize(
    ("container", "predictor", "field", "what"),
    [
        ({"image": "example.org/predictor:1"}, {}, "containers[0].image", "docker buildx imagetools inspect"),
        ({"image": f"Example.org/x@sha256:{1:064}"}, {}, "containers[0].image", "no name of an image"),
        ({"image": f"example.org/x@sha512:{1:0128}"}, {}, "containers[0].image", "REPOSITORY@sha256:"),
        ({}, {"model": MODEL}, "containers", "leave out one of them"),
        ({}, {"batcher": {}}, "batcher", "let the container do it"),
        ({}, {"logger": {"url": "http://x"}}, "logger", "let the container do it"),
        ({}, {"protocolVersion": "grpc-v2"}, "protocolVersion", "expected v1 or v2"),
        (
            {"env": [{"name": "PROTOCOL", "value": "v1"}]},
            {"protocolVersion": "v2"},
            "protocolVersion",
            "PROTOCOL is v1",
        ),
        ({"env": [{"name": "STORAGE_URI", "value": "s3://x"}]}, {}, "containers[0].env", "is given no files"),
        ({"ports": [{"containerPort": 8000}]}, {}, "containers[0].ports[0].containerPort", "choose another"),
        ({"ports": [{"containerPort": 80}]}, {}, "containers[0].ports[0].containerPort", "from 1024"),
        ({"ports": [{"name": "grpc", "containerPort": 9000}]}, {}, "containers[0].ports[0].name", "no gRPC"),
        (
            {"ports": [{"containerPort": 9000}, {"containerPort": 9001}]},
            {},
            "containers[0].ports",
            "takes HTTP requests at one port",
        ),
        ({"readinessProbe": {"exec": {"command": ["x"]}}}, {}, "containers[0].readinessProbe.httpGet", "is missing"),
        ({"readinessProbe": {"httpGet": {"path": "x"}}}, {}, "containers[0].readinessProbe.httpGet.path", "/healthz"),
        (
            {"readinessProbe": {"httpGet": {"path": "/", "port": 9}}},
            {},
            "containers[0].readinessProbe.httpGet.port",
            "the container's port is 8080",
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpu": "auto"}}},
            {},
            "containers[0].resources.limits.nvidia.com/gpu",
            "name one",
        ),
        ({"securityContext": {"privileged": True}}, {}, "containers[0].securityContext", "restricted"),
        ({"volumeMounts": []}, {}, "containers[0].volumeMounts", "/tmp"),
        ({"storageUri": "models:/x/1"}, {}, "containers[0].storageUri", "spec.predictor.model"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    container: dict[str, Any], predictor: dict[str, Any], field: str, what: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(container, **predictor)
    assert refused.value.field == f"spec.predictor.{field}"
    assert what in refused.value.message


@pytest.mark.parametrize(
    ("predictor", "field"),
    [({}, "spec.predictor.model"), ({"containers": []}, "spec.predictor.containers")],
)
def test_one_container_or_a_model_is_needed(predictor: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_service(document(**predictor))
    assert refused.value.field == field


def test_two_containers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="has 2 entries; a custom predictor is one container"):
        parse_service(document(containers=[CONTAINER, CONTAINER]))


@pytest.mark.parametrize("name", ["FAIRLEAD_REVISION", "PATH", "LD_PRELOAD", "NVIDIA_VISIBLE_DEVICES"])
def test_variables_of_the_platform_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_env(read({"env": [{"name": name, "value": "x"}]}), is_code=False)
    assert refused.value.field == "spec.predictor.containers[0].env"


def test_one_machine_runs_no_images() -> None:
    with pytest.raises(InvalidInput, match="runs programs and no images; name the folder of a program") as refused:
        refuse_on("local", read())
    assert refused.value.field == "spec.predictor.containers[0].image"
    refuse_on("kubernetes", read())


PROGRAM: dict[str, Any] = {"command": ["python3", "serve.py"], "workingDir": "/srv/programs/sentiment-3"}


def test_one_machine_runs_a_program_in_its_folder() -> None:
    probe = {"httpGet": {"path": "/healthz", "port": "http"}}
    spec = parse_service(document(containers=[{**PROGRAM, "args": ["--http_port=$(PORT)"], "readinessProbe": probe}]))
    assert spec.custom is not None
    assert (spec.custom.working_dir, spec.custom.image) == ("/srv/programs/sentiment-3", "")
    assert (spec.custom.ready_path, spec.custom.args) == ("/healthz", ("--http_port=$(PORT)",))
    recorded = replace(spec.custom, image=f"sentiment-3@sha256:{2:064}")
    assert recorded.digest == f"sha256:{2:064}"
    assert stored_custom(custom_json(recorded)) == recorded
    refuse_on("local", spec)
    with pytest.raises(InvalidInput, match="workingDir is for services on the local cluster") as refused:
        refuse_on("kubernetes", spec)
    assert refused.value.field == "spec.predictor.containers[0].workingDir"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"ports": [{"containerPort": 8080}]}, "ports"),
        ({"command": None}, "command"),
        ({"image": IMAGE}, "image"),
        ({"workingDir": "/"}, "workingDir"),
        ({"workingDir": "/srv/programs/./x"}, "workingDir"),
        ({"workingDir": "//srv/programs/x"}, "workingDir"),
        ({"workingDir": "/srv/" + "p/" * 600 + "x"}, "workingDir"),
        ({"readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}}}, "readinessProbe.httpGet.port"),
    ],
)
def test_what_a_program_cannot_have_is_refused_by_name(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_service(document(containers=[{**PROGRAM, **changed}]))
    assert refused.value.field == f"spec.predictor.containers[0].{field}"


def test_a_file_says_another_container_or_a_model_again() -> None:
    model = document(model={**MODEL, "env": [{"name": "TZ", "value": "UTC"}]}, batcher={"maxBatchSize": 4})
    custom = document(containers=[{**CONTAINER, "args": ["--fast"]}], protocolVersion="v1", egress=True)
    other = document(containers=[{"image": f"example.org/other@sha256:{2:064}", "ports": [{"containerPort": 9000}]}])
    for before in (model, custom, other):
        for after in (model, custom, other):
            wanted, spec = parse_service(after), parse_service(before)
            content = replace(content_of(wanted), storage_uri=wanted.storage_uri or None)
            found = parse_service(file_saying(before, spec, content))
            assert (found.custom, found.env, found.storage_uri) == (wanted.custom, wanted.env, wanted.storage_uri)
            assert found.model_config == wanted.model_config
