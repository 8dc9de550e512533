"""Unmodified V2 clients against a real server, in processes of their own: they bring protobuf messages of our names."""

import subprocess
import sys

import pytest

from tests.serving_runtime._support.clients import PRELUDE
from tests.serving_runtime._support.processes import ServerProcess

ASKING = """
assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready("versions") and client.is_model_ready("versions", "1")
assert not client.is_model_ready("versions", "2") and not client.is_model_ready("nobody")
metadata = plain(client.get_server_metadata())
assert metadata["name"] == "fairlead" and "binary_tensor_data" in metadata["extensions"]
metadata = plain(client.get_model_metadata("versions", "1"))
assert metadata["versions"] == ["1", "3"] and metadata["platform"] == "onnxruntime_onnx", metadata
assert [int(dim) for dim in metadata["outputs"][0]["shape"]] == [-1, 2]
config = plain(client.get_model_config("mlp"))
config = config.get("config", config)
assert config["max_batch_size"] == 8 and config["input"][0]["data_type"] == "TYPE_FP32", config
assert "dynamic_batching" in config
index = plain(client.get_model_repository_index())
index = index["models"] if protocol == "grpc" else index
assert {"name": "versions", "version": "3", "state": "READY"}.items() <= index[-1].items(), index
"""

INFERRING = """
x = np.arange(16, dtype=np.float32).reshape(2, 8) / 10
answer = client.infer("mlp", [given("x", "FP32", x)], request_id="a7", outputs=[v2.InferRequestedOutput("y")])
binary = answer.as_numpy("y")
assert binary.shape == (2, 3) and binary.dtype == np.float32
response = plain(answer.get_response())
assert response["id"] == "a7" and response["model_name"] == "mlp" and response["model_version"] == "1", response
assert np.array_equal(client.infer("mlp", [given("x", "FP32", x)]).as_numpy("y"), binary)
if protocol == "http":
    for ask in ({"binary_data": False}, {"binary_data": True}):
        for send in ({"binary_data": False}, {"binary_data": True}):
            outputs = [v2.InferRequestedOutput("y", **ask)]
            found = client.infer("mlp", [given("x", "FP32", x, **send)], outputs=outputs).as_numpy("y")
            np.testing.assert_allclose(found, binary, rtol=1e-6)
for version, width in (("1", 2), ("3", 3), ("", 3)):
    found = client.infer("versions", [given("x", "FP32", np.ones((1, 4), np.float32))], model_version=version)
    assert found.as_numpy("y").shape == (1, width)
futures = [client.async_infer("mlp", [given("x", "FP32", x[:1])]) for _ in range(20)] if protocol == "http" else []
for future in futures:
    assert future.get_result().as_numpy("y").shape == (1, 3)
"""

DATATYPES = """
import ml_dtypes
for name, dtype, values in (
    ("BOOL", bool, [True, False]), ("UINT8", "u1", [0, 255]), ("UINT16", "u2", [0, 65535]),
    ("UINT32", "u4", [0, 2**32 - 1]), ("UINT64", "u8", [0, 2**64 - 1]), ("INT8", "i1", [-128, 127]),
    ("INT16", "i2", [-2**15, 2**15 - 1]), ("INT32", "i4", [-2**31, 2**31 - 1]), ("INT64", "i8", [-2**63, 2**63 - 1]),
    ("FP16", "f2", [0.5, -2]), ("FP32", "f4", [0.1, -2]), ("FP64", "f8", [0.1, -2]),
    ("BF16", ml_dtypes.bfloat16, [0.5, -2]), ("BYTES", object, [b"", "é".encode()]),
):
    array = np.array([values], dtype=dtype)
    model = f"identity_{name.lower()}"
    found = client.infer(model, [given("x", name, array)]).as_numpy("y")
    assert found.tolist() == array.tolist(), (name, found)
    if protocol == "http" and name not in ("FP16", "BF16"):  # which this client itself sends in binary only
        outputs = [v2.InferRequestedOutput("y", binary_data=False)]
        found = client.infer(model, [given("x", name, array, binary_data=False)], outputs=outputs).as_numpy("y")
        assert found.astype(array.dtype).tolist() == (array.tolist() if name != "BYTES" else [["", "é"]]), (name, found)
"""

REFUSALS = """
codes = {400: "400", 404: "404", 500: "500", 501: "501"}
if protocol == "grpc":
    codes = {400: "StatusCode.INVALID_ARGUMENT", 404: "StatusCode.NOT_FOUND", 500: "StatusCode.INTERNAL",
             501: "StatusCode.UNIMPLEMENTED"}
def zeros(*shape, name="x", datatype="FP32", dtype=np.float32):
    return [given(name, datatype, np.zeros(shape, dtype))]

x = zeros(1, 8)
bad = codes[400]
assert "unknown model 'nobody'" in refused(codes[404], "nobody", x)
assert "has no version '9'" in refused(codes[404], "versions", x, model_version="9")
assert "unexpected shape for input 'x'" in refused(bad, "mlp", zeros(1, 7))
assert "batch-size must be <= 8 for 'mlp'" in refused(bad, "mlp", zeros(9, 8))
assert "unexpected inference input 'z'" in refused(bad, "mlp", zeros(1, 8, name="z"))
assert "data-type is 'INT32'" in refused(bad, "mlp", zeros(1, 8, datatype="INT32", dtype=np.int32))
assert "unexpected inference output 'z'" in refused(bad, "mlp", x, outputs=[v2.InferRequestedOutput("z")])
assert "the model failed" in refused(codes[500], "picky", [given("x", "INT64", np.full((1, 1), 99))])
shared = v2.InferInput("x", [1, 8], "FP32")
shared.set_shared_memory("region", 32)
assert "--allow-client-shm=true" in refused(codes[501], "mlp", [shared])
assert client.is_server_ready()
"""

STATISTICS = """
def counts():
    stats = plain(client.get_inference_statistics("mlp"))["model_stats"][0]
    return int(stats.get("inference_count", 0)), int(stats["inference_stats"]["success"].get("count", 0))

before = counts()
for _ in range(3):
    client.infer("mlp", [given("x", "FP32", np.zeros((2, 8), np.float32))])
after = counts()
assert (after[0] - before[0], after[1] - before[1]) == (6, 3), (before, after)
stats = plain(client.get_inference_statistics())["model_stats"]
assert len(stats) > 10
"""

SEQUENCES = """
def add(value, sequence, **flags):
    x = np.full((1, 2), value, np.float32)
    answer = client.infer("total", [given("x", "FP32", x)], sequence_id=sequence, **flags)
    return answer.as_numpy("sum")[0, 0]

extensions = plain(client.get_server_metadata())["extensions"]
assert "sequence" in extensions and "sequence(string_id)" in extensions
for ids in ((1, 2), (f"a {protocol}", f"b {protocol}")):
    assert [add(1, ids[0], sequence_start=True), add(10, ids[1], sequence_start=True)] == [1, 10]
    assert [add(2, ids[0]), add(20, ids[1]), add(3, ids[0], sequence_end=True)] == [3, 30, 6]
    code = "400" if protocol == "http" else "StatusCode.INVALID_ARGUMENT"
    said = refused(code, "total", [given("x", "FP32", np.zeros((1, 2), np.float32))], sequence_id=ids[0])
    assert said == (
        f"inference request for sequence {ids[0]} to model 'total' must specify the START flag on the first request "
        "of the sequence"
    ), said
    add(0, ids[1], sequence_end=True)
"""

ENSEMBLE = """
metadata = plain(client.get_model_metadata("twice"))
assert metadata["platform"] == "ensemble" and metadata["outputs"][0]["name"] == "y", metadata
config = plain(client.get_model_config("twice"))
steps = config.get("config", config)["ensemble_scheduling"]["step"]
assert [step["model_name"] for step in steps] == ["identity_fp32"] * 2, steps
x = np.array([[1, 2], [3, 4]], np.float32)
assert client.infer("twice", [given("x", "FP32", x)]).as_numpy("y").tolist() == x.tolist()
stats = plain(client.get_inference_statistics("twice"))["model_stats"][0]["inference_stats"]["success"]
assert int(stats["count"]) >= 1, stats
"""

CACHED = """
x = np.full((2, 8), ["http", "grpc"].index(protocol), np.float32)
answers = [client.infer("cached", [given("x", "FP32", x)]).as_numpy("y").tolist() for _ in range(2)]
assert answers[0] == answers[1]
told = plain(client.get_inference_statistics("cached"))["model_stats"][0]
durations = told["inference_stats"]
assert int(durations["cache_hit"]["count"]) == int(durations["cache_miss"]["count"]) >= 1, told
assert int(told["execution_count"]) == int(durations["cache_miss"]["count"]), told
"""


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            ASKING + INFERRING,
            id="asks and infers",
            marks=pytest.mark.feature("P1", "P2", "P3", "P4", "P5", "P6", "P7", "E1", "E2", "E5", "E8"),
        ),
        pytest.param(DATATYPES, id="sends every datatype and gets it back", marks=pytest.mark.feature("P9")),
        pytest.param(REFUSALS, id="is refused by code and in words", marks=pytest.mark.feature("P11")),
        pytest.param(SEQUENCES, id="sends sequences", marks=pytest.mark.feature("E15")),
        pytest.param(ENSEMBLE, id="asks an ensemble", marks=pytest.mark.feature("C10")),
        pytest.param(CACHED, id="asks twice", marks=pytest.mark.feature("C12")),
        pytest.param(STATISTICS, id="reads statistics", marks=pytest.mark.feature("E9")),
    ],
)
def test_tritonclient(shared: ServerProcess, protocol: str, steps: str) -> None:
    port = shared.http if protocol == "http" else shared.grpc
    arguments = [sys.executable, "-c", PRELUDE + steps, protocol, str(port)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


TYPED = """
import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
request = service_pb2.ModelInferRequest(model_name="identity_int8")
tensor = request.inputs.add(name="x", datatype="INT8", shape=[1, 2])
tensor.contents.int_contents.extend([-1, 2])
answer = stub.ModelInfer(request)
assert np.frombuffer(answer.raw_output_contents[0], "i1").tolist() == [-1, 2]
try:
    stub.SystemSharedMemoryStatus(service_pb2.SystemSharedMemoryStatusRequest())
    raise AssertionError("answered")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
check = channel.unary_unary("/grpc.health.v1.Health/Check")
assert check(b"") == b"\\x08\\x01"
assert check(b"\\x0a\\x1e" + b"inference.GRPCInferenceService") == b"\\x08\\x01"
try:
    check(b"\\x0a\\x04else")
    raise AssertionError("answered")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.NOT_FOUND
try:
    channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(bytes(65 * 1024 * 1024))
    raise AssertionError("answered")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
"""


@pytest.mark.feature("P7", "P12")
def test_a_plain_grpc_client_sends_typed_contents_and_probes_health(shared: ServerProcess) -> None:
    arguments = [sys.executable, "-c", PRELUDE + TYPED, "grpc", str(shared.grpc)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
