"""What fuzzing starts from: well-formed inputs of every target, and known attacks."""

import numpy as np
import orjson
import yaml

from serving_runtime.proto import ModelInferRequest
from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.headers.blocks import encode

_X = np.arange(8, dtype=np.float32).tobytes()
_HUGE = {"inputs": [{"name": "x", "shape": [2**40, 3], "datatype": "FP32", "parameters": {"binary_data_size": 32}}]}
_JSON = {"id": "1", "inputs": [{"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [[0, 1, 2, 3, 4, 5, 6, 7]]}]}
_BINARY = {
    "inputs": [{"name": "x", "shape": [1, 8], "datatype": "FP32", "parameters": {"binary_data_size": 32}}],
    "outputs": [{"name": "y", "parameters": {"binary_data": True, "classification": 2}}],
    "parameters": {"priority": 1, "timeout": 5, "sequence_id": 7, "sequence_start": True},
}
_TEXT = {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "BYTES", "data": ["a", "\u00e9"]}]}
_SHARED = {
    "inputs": [
        {
            "name": "x",
            "shape": [1, 8],
            "datatype": "FP32",
            "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 32, "shared_memory_offset": 0},
        }
    ]
}


def _infer(model: int, content: object, tail: bytes = b"") -> bytes:
    header = orjson.dumps(content)
    return bytes([model]) + (len(header) if tail else 0).to_bytes(2, "little") + header + tail


def _plain(choice: int, content: object) -> bytes:
    return bytes([choice]) + orjson.dumps(content)


def _post(path: str, body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return b"\x00" + f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _get(path: str, method: str = "GET") -> bytes:
    return b"\x02" + f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def _message(model: str, *inputs: object, **fields: object) -> bytes:
    content: bytes = ModelInferRequest(model_name=model, inputs=inputs, **fields).SerializeToString()
    return content


def _input(datatype: str, *shape: int, **fields: object) -> object:
    return ModelInferRequest.InferInputTensor(name="x", datatype=datatype, shape=shape, **fields)


_PATHS = (
    "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models", "/v2/models/mlp", "/v2/models/mlp/versions/1/ready",
    "/v2/models/mlp/config", "/v2/models/stats", "/v2/models/mlp/stats", "/v2/logging", "/v2/trace/setting",
    "/v2/systemsharedmemory/status", "/v1/models", "/v1/models/mlp", "/v2/docs", "/%2e%2e/v2?x=%00", "//", "*",
)  # fmt: skip

_POSTED = (
    ("/v2/repository/index", {"ready": True}),
    ("/v2/repository/models/mlp/load", {"parameters": {"config": "{}", "file:1/model.onnx": "AAAA"}}),
    ("/v2/repository/models/mlp/unload", {"parameters": {"unload_dependents": True}}),
    ("/v2/systemsharedmemory/region/r/register", {"key": "/r", "offset": 0, "byte_size": 32}),
    ("/v2/models/mlp/generate", {"x": 1}),
    ("/v2/models/text/generate_stream", {"id": "1", "x": ["a", "b"], "parameters": {"k": 1}}),
    ("/v1/models/mlp:predict", {"instances": [[0, 1, 2, 3, 4, 5, 6, 7]]}),
    ("/v2/logging", {"log_verbose_level": 1, "log_format": "ISO8601"}),
    ("/v2/trace/setting", {"trace_level": ["TIMESTAMPS"], "trace_rate": "1000"}),
)

_MESSAGE = _message("mlp", _input("FP32", 1, 8), raw_input_contents=[_X])


def _call(number: int, method: str, message: bytes, *fields: tuple[bytes, bytes]) -> bytes:
    """Return one call as frames of HTTP/2."""
    path = f"/inference.GRPCInferenceService/{method}".encode()
    head = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b"content-type", b"application/grpc"))
    content = b"\x00" + len(message).to_bytes(4, "big") + message
    return frames.frame(frames.HEADERS, frames.END_HEADERS, number, encode((*head, *fields))) + frames.frame(
        frames.DATA, frames.END_STREAM, number, content
    )


def _frames(*pieces: bytes, cuts: int = 0) -> bytes:
    return bytes([cuts]) + b"".join(pieces)


_SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: digits
  namespace: vision
  annotations: {serving.kserve.io/stop: "false"}
spec:
  cluster: production
  rollout: {policy: careful}
  patches:
  - {target: {kind: Deployment}, merge: {spec: {minReadySeconds: 5}}}
  predictor:
    minReplicas: 1
    maxReplicas: 4
    scaleTarget: 10
    scaleMetric: concurrency
    timeout: 60
    logger: {url: "https://logs.example.com/in", mode: all}
    batcher: {maxBatchSize: 16, maxLatency: 5}
    model:
      modelFormat: {name: onnx}
      storageUri: models:/digits@production
      env: [{name: LEVEL, value: "1"}]
      config: {instance_group: [{count: 2}]}
      resources:
        requests: {cpu: 500m, memory: 1Gi}
        limits: {nvidia.com/mig-1g.10gb: 1}
  transformer:
    containers:
    - {image: registry.example.com/own:1, env: [{name: A, value: b}], resources: {requests: {cpu: 1}}}
"""
_CLUSTER = """
name: production
kind: kubernetes
connection:
  context: own
  kubeconfig: |
    current-context: own
    contexts: [{name: own, context: {cluster: c, user: u}}]
    clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: "QUFB"}}]
    users: [{name: u, user: {token: secret}}]
gateway: {url: "https://models.example.com", name: models, namespace: gateways}
runtimeImage: registry.example.com/fairlead/serving-runtime:1
artifacts: {claim: models, root: /var/lib/fairlead/artifacts}
apiServerNetworks: [10.0.0.0/24]
reach: apiServer
patches:
- {target: {kind: Deployment}, merge: {spec: {minReadySeconds: 5}}}
- target: {kind: Service}
  json6902:
  - {op: add, path: /metadata/annotations, value: {a: b, c: [1]}}
  - {op: test, path: /metadata/annotations/a, value: b}
  - {op: copy, from: /metadata/annotations/c, path: /metadata/annotations/d}
  - {op: move, from: /metadata/annotations/d/0, path: /metadata/annotations/e}
  - {op: remove, path: /metadata/annotations/c}
defaults: {resources: {requests: {cpu: 500m, memory: 1Gi}}}
"""


_DOUBLING = {
    "target": {"kind": "Service"},
    "json6902": [
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        *({"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/{number}"} for number in range(40)),
    ],
}


def _file(text: str) -> tuple[bytes, ...]:
    """Return a file as YAML and as JSON, and with each of its lines broken in ways that readers have stumbled over."""
    lines = text.strip().splitlines()
    broken = (
        "\n".join((*lines[:at], line.partition(":")[0] + ": " + value, *lines[at + 1 :]))
        for at, line in enumerate(lines)
        if ":" in line
        for value in ("null", "{0: 1, a: 2}", "0x" + "f" * 3600)
    )
    as_json = orjson.dumps(yaml.safe_load(text))
    return (b"\x00" + text.encode(), b"\x80" + as_json, *(b"\x00" + each.encode() for each in broken))


_TEXTS = (
    "[" * 3000, "{a: " * 3000, "- " * 3000, "? " * 3000, "a: !!int b", "a: !!float b", "a: !!bool b", "a: !!int ''",
    "a: !!binary b", "a: !!timestamp b", "a: " + "9" * 5000, "? [a]\n: b", "a: &a [*a]", "a: \"\\0\"", "a: \"\\ud800\"",
    "a: !!set {b}", "a: !!omap [b: 1]", "a: 1:" + "59:" * 900 + "1", "a: 0b", "a: 0x_", "a: 1e400", "%YAML 9.9\n---\n",
)  # fmt: skip

SEEDS: dict[str, tuple[bytes, ...]] = {
    "http": (
        *[_get(path) for path in _PATHS],
        *[_post(path, orjson.dumps(content)) for path, content in _POSTED],
        _get("/v2", "HEAD"),
        _post("/v2/models/mlp/infer", orjson.dumps(_JSON), "Expect: 100-continue"),
        _post("/v2/models/mlp/infer", orjson.dumps(_JSON), "Accept-Encoding: gzip"),
        _post("/v2/models/mlp/infer", b"\x1f\x8b\x08\x00", "Content-Encoding: gzip"),
        b"\x03POST /v1/models/mlp:predict HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n0\r\n\r\n",
        b"\x00POST /v2 HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x00GET /v2 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"\x00POST /v2 HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"\x00GET http://x:1/v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: z\r\n\r\n",
        b"\x05" + _get("/v2")[1:] * 5,
    ),
    "infer": (
        _infer(0, _JSON),
        _infer(0, _BINARY, _X),
        _infer(0, _HUGE, _X),
        _infer(1, _TEXT),
        _infer(0, _SHARED),
        _infer(2, {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "INT8", "data": [-128, 127]}]}),
        _infer(0, {"inputs": [{"name": "x", "shape": [0, -1], "datatype": "FP32", "data": []}]}),
        b"\x00\x00\x00" + b"[" * 5000,
    ),
    "plain": (
        _plain(0, {"instances": [[0, 1, 2, 3, 4, 5, 6, 7]], "signature_name": "serving_default"}),
        _plain(1, {"instances": [{"x": ["a", {"b64": "AAA="}]}]}),
        _plain(2, {"inputs": {"x": [[-128, 127]]}}),
        _plain(2 + 128, {"inputs": [[1, 2], [3]]}),
        _plain(3, {"x": [0, 1, 2, 3, 4, 5, 6, 7.5]}),
        _plain(7, {"id": "1", "parameters": {"x": ["a", "b"], "triton_enable_empty_final_response": True}}),
        _plain(9, _JSON),
        b"\x00" + b'{"instances":' + b"[" * 5000,
        b"\x01" + b'{"instances":[' + b"[]," * 500 + b"{}]}",
    ),
    "grpc": (
        _message("mlp", _input("FP32", 1, 8), raw_input_contents=[_X]),
        _message("mlp", _input("FP32", 2**40, 3), raw_input_contents=[_X]),
        _message("text", _input("BYTES", 1, 2, contents={"bytes_contents": [b"a", b""]})),
        _message("int8", _input("INT8", 1, 2, contents={"int_contents": [-129, 2]})),
        _message("mlp", model_version="1", outputs=[{"name": "y"}], parameters={"priority": {"int64_param": -1}}),
    ),
    "h2": (
        _frames(_call(1, "ServerLive", b"")),
        _frames(_call(1, "ModelInfer", _MESSAGE), _call(3, "ModelInfer", _MESSAGE), cuts=5),
        _frames(_call(1, "ModelStreamInfer", _MESSAGE), frames.rst_stream(1, frames.ErrorCode.CANCEL)),
        _frames(_call(1, "ModelInfer", _MESSAGE, (b"grpc-timeout", b"1n"), (b"x-id-bin", b"AAA"))),
        _frames(_call(1, "ModelInfer", _MESSAGE, (b"grpc-encoding", b"gzip"), (b"content-length", b"5"))),
        _frames(frames.settings({frames.INITIAL_WINDOW_SIZE: 0}), _call(1, "ModelInfer", _MESSAGE)),
        _frames(_call(1, "NoMethod", b""), frames.window_update(1, 9), frames.window_update(0, 9)),
        _frames(frames.frame(frames.PING, 0, 0, bytes(8)), frames.goaway(0, frames.ErrorCode.NO_ERROR)),
        _frames(frames.frame(frames.HEADERS, frames.PADDED, 1, b"\x02\x83" + bytes(2)), cuts=3),
    ),
    "config": (
        b'name: "model" backend: "onnxruntime" max_batch_size: 8 dynamic_batching { preferred_batch_size: [4, 8] }',
        b"input [ { name: 'x' data_type: TYPE_FP32 dims: [ -1, 8 ] reshape { shape: [ 8 ] } } ]",
        b"instance_group [ { count: 2 kind: KIND_CPU } ] parameters { key: 'a' value { string_value: 'b' } }",
        b"version_policy { specific { versions: [1, 2] } } model_warmup { name: 'w' batch_size: 1 }",
        b"sequence_batching { oldest { max_candidate_sequences: 4 } control_input { name: 's' control "
        b"{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } } }",
        b"ensemble_scheduling { step { model_name: 'a' model_version: -1 input_map { key: 'x' value: 'y' } } }",
        b"# only a comment\nmax_batch_size: 99999999999999999999",
    ),
    "service-file": (*_file(_SERVICE), *(b"\x00" + text.encode() for text in _TEXTS), b"\x80" + b"[" * 3000),
    "cluster-file": (
        *_file(_CLUSTER),
        b"\x80" + orjson.dumps(yaml.safe_load(_CLUSTER) | {"patches": [_DOUBLING]}),
        *(b"\x80" + orjson.dumps(yaml.safe_load(_CLUSTER) | {"connection": {"kubeconfig": text}}) for text in _TEXTS),
    ),
    "tensors": (
        bytes([7, 2]) + (1).to_bytes(8, "little") + (8).to_bytes(8, "little") + _X,
        bytes([13, 1]) + (2).to_bytes(8, "little") + b"\x01\x00\x00\x00a\x00\x00\x00\x00",
        bytes([13, 1]) + (1).to_bytes(8, "little") + b"\xff\xff\xff\xff",
        bytes([7, 2]) + (2**40).to_bytes(8, "little") + (3).to_bytes(8, "little"),
    ),
}  # fmt: skip
