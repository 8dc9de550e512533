"""gRPC reflection of a real server: a client without the .proto files finds the methods and calls one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from serving_runtime import proto
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

VERSIONS = ("v1", "v1alpha")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("models")
    onnx_models.mlp(root / "m" / "1" / "model.onnx", (4, 3))
    with server(root, scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


def ask(port: int, version: str, *asked: dict[str, Any]) -> list[Any]:
    """Return the answers to these requests, of one call."""
    package = f"grpc.reflection.{version}"
    kind = proto.message(f"{package}.ServerReflectionRequest")
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.stream_stream(f"/{package}.ServerReflection/ServerReflectionInfo")
        answers = call(iter([kind(**each).SerializeToString() for each in asked]), timeout=20, wait_for_ready=True)
        return [proto.message(f"{package}.ServerReflectionResponse").FromString(answer) for answer in answers]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_without_the_files_finds_a_method_and_calls_it(served: ServerProcess, version: str) -> None:
    listed, described = ask(
        served.grpc, version, {"list_services": ""}, {"file_containing_symbol": "inference.GRPCInferenceService"}
    )
    names = [service.name for service in listed.list_services_response.service]
    reflections = [f"grpc.reflection.{each}.ServerReflection" for each in VERSIONS]
    assert names == ["grpc.health.v1.Health", *reflections, "inference.GRPCInferenceService"]
    pool = descriptor_pool.DescriptorPool()
    files = [
        descriptor_pb2.FileDescriptorProto.FromString(file)
        for file in described.file_descriptor_response.file_descriptor_proto
    ]
    assert {file.name for file in files} == {"inference.proto", "model_config.proto"}
    for file in reversed(files):
        pool.Add(file)
    method = pool.FindServiceByName(names[-1]).methods_by_name["ModelMetadata"]
    takes, gives = (message_factory.GetMessageClass(each) for each in (method.input_type, method.output_type))
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel:
        call = channel.unary_unary(f"/{names[-1]}/ModelMetadata", takes.SerializeToString, gives.FromString)
        metadata = call(takes(name="m"), timeout=20)
    assert [tensor.name for tensor in metadata.inputs] == ["x"]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_there_is_an_error_in_the_answer_and_the_call_goes_on(served: ServerProcess, version: str) -> None:
    *errors, last, method = ask(
        served.grpc,
        version,
        {"file_by_filename": "nothing.proto"},
        {"file_containing_symbol": "inference.Nothing"},
        {"file_containing_symbol": "inference.GRPCInferenceService.Nothing"},
        {"all_extension_numbers_of_type": "inference.Nothing"},
        {"file_containing_extension": {"containing_type": "inference.ModelConfig", "extension_number": 1}},
        {"host": "h"},
        {"all_extension_numbers_of_type": "inference.ModelConfig"},
        {"file_containing_symbol": "inference.GRPCInferenceService.ModelInfer"},
    )
    assert [error.error_response.error_code for error in errors] == [5, 5, 5, 5, 5, 3]
    assert errors[0].error_response.error_message == "there is no file by filename 'nothing.proto'"
    assert errors[5].original_request.host == "h"
    assert last.all_extension_numbers_response.base_type_name == "inference.ModelConfig"
    assert len(method.file_descriptor_response.file_descriptor_proto) == 2


def test_a_call_that_waits_ends_with_the_server(tmp_path: Path) -> None:
    onnx_models.mlp(tmp_path / "models" / "m" / "1" / "model.onnx", (4, 3))
    package = "grpc.reflection.v1"
    kind = proto.message(f"{package}.ServerReflectionRequest")
    with (
        server(tmp_path / "models", scratch=tmp_path) as process,
        grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel,
    ):
        ended: list[bool] = []

        def requests() -> Iterator[bytes]:
            yield kind(list_services="").SerializeToString()
            process.process.wait(30)
            ended.append(True)

        answers = channel.stream_stream(f"/{package}.ServerReflection/ServerReflectionInfo")(requests(), timeout=40)
        assert next(answers)
        process.terminate()
        with pytest.raises(grpc.RpcError) as refused:
            next(answers)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert process.process.wait(20) == 0
