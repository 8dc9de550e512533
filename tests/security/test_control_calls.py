"""Calls that change a server for all of its clients: replicas take none, from whomever, whatever their services say."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from onnx import TensorProto

from integrations.clusters.kubernetes.manifests.workloads.companion import companions
from integrations.clusters.kubernetes.manifests.workloads.pods import pod_template
from serving_runtime.protocol.grpc.access import GROUPS
from serving_runtime.protocol.restrictions import CONTROL
from tests.integrations._support.manifests import given
from tests.integrations._support.runtimes import RUNTIME, Cluster, infer_json
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

SERVICE = "/inference.GRPCInferenceService"
REGION = {"key": "/region", "offset": 0, "byte_size": 64}
OPENED = {"FAIRLEAD_ALLOW_CONTROL_CALLS": "true"}
"""As a deployer would try it in a service file."""

CALLS = [
    ("POST", "/v2/repository/index", {}),
    ("POST", "/v2/repository/models/digits/unload", {}),
    ("POST", "/v2/repository/models/digits/load", {"parameters": {"config": "{}"}}),
    ("POST", "/v2/repository/mine/models/digits/unload", {}),
    ("GET", "/v2/systemsharedmemory/status", None),
    ("POST", "/v2/systemsharedmemory/region/mine/register", REGION),
    ("POST", "/v2/systemsharedmemory/unregister", {}),
    ("POST", "/v2/cudasharedmemory/region/mine/register", {"raw_handle": {"b64": ""}, "device_id": 0, "byte_size": 1}),
    ("GET", "/v2/logging", None),
    ("POST", "/v2/logging", {"log_verbose_level": 9}),
    ("POST", "/v2//logging/", {"log_verbose_level": 9}),
    ("POST", "/v2/%6Cogging", {"log_verbose_level": 9}),
    ("GET", "/v2/trace/setting", None),
    ("POST", "/v2/trace/setting", {"trace_level": ["TENSORS"], "trace_rate": "1"}),
    ("POST", "/v2/models/digits/trace/setting", {"trace_level": ["TENSORS"]}),
]
METHODS = [method for method, group in GROUPS.items() if group in CONTROL]


def refused(http: httpx.Client, grpc_target: str) -> None:
    """See that every control call of both protocols is refused, and that the model still answers."""
    with http as client:
        for method, path, content in CALLS:
            answer = client.request(method, path, json=content)
            assert answer.status_code in (403, 404), (path, answer.text)
            if "//" not in path:
                assert "--allow-control-calls=false" in answer.json()["error"], (path, answer.text)
        assert client.get("/v2/models/digits/stats").status_code == 200
        assert client.post("/v2/models/digits/infer", content=infer_json()).status_code == 200
    with grpc.insecure_channel(grpc_target) as channel:
        for method in METHODS:
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(f"{SERVICE}/{method}")(b"", timeout=20)
            assert "--allow-control-calls=false" in caught.value.details(), method
        channel.unary_unary(f"{SERVICE}/ModelStatistics")(b"", timeout=20)


@contextmanager
def replica(home: Path, runtime: str) -> Iterator[dict[str, Any]]:
    """Have an agent run a replica until the block ends; yields what its port file says."""
    cluster = Cluster(home)
    try:
        cluster.start(runtime=runtime)
        cluster.apply(1, cluster.revision(1, 100, env=OPENED))
        cluster.until_ready(1)
        (file,) = cluster.layout.private.glob("*/ports")
        yield json.loads(file.read_bytes())
    finally:
        cluster.close()


def test_a_local_replica_takes_no_control_calls(tmp_path: Path) -> None:
    with replica(tmp_path, RUNTIME) as places:
        way = httpx.HTTPTransport(uds=places["http"].removeprefix("unix:"))
        refused(httpx.Client(base_url="http://localhost", transport=way, timeout=20), places["grpc"])


def test_a_local_replica_on_ports_takes_none_either_and_listens_at_one_loopback_address_only(tmp_path: Path) -> None:
    with replica(tmp_path, f"{RUNTIME} --grpc-server=grpcio") as ports:
        refused(httpx.Client(base_url=f"http://127.0.0.1:{ports['http']}"), f"127.0.0.1:{ports['grpc']}")
        for port in (ports["http"], ports["grpc"], ports["metrics"]):
            with socket.create_connection(("127.0.0.1", port), timeout=10):
                pass
            with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", port), timeout=10):
                pass


def test_a_runtime_that_may_do_all_of_it_refuses_all_of_it(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    onnx_models.identity(repository / "digits" / "1" / "model.onnx", TensorProto.FLOAT, ("N", 4))
    flags = ["--model-control-mode=explicit", "--load-model=*", "--allow-client-shm", "--allow-control-calls=false"]
    flags += ["--http-restricted-api=logging:admin-key=secret"]
    with server(repository, *flags, scratch=tmp_path) as process:
        refused(httpx.Client(base_url=process.url), f"127.0.0.1:{process.grpc}")
        answer = httpx.get(f"{process.url}/v2/logging", headers={"admin-key": "secret"})
        assert answer.status_code == 403, "no header opens what is closed"


def test_pods_on_kubernetes_take_no_control_calls() -> None:
    desired, _, options = given("transformer")
    revision = next(each for each in desired.revisions if each.transformer is not None)
    assert revision.transformer is not None
    revision = replace(revision, env=OPENED, transformer=replace(revision.transformer, env=OPENED))
    before = [each for each in companions(desired, revision, options) if each["kind"] == "Deployment"]
    assert len(before) == 1
    for template in (pod_template(desired, revision, options), before[0]["spec"]["template"]):
        (container,) = template["spec"]["containers"]
        assert [each["value"] for each in container["env"] if each["name"] in OPENED] == ["false"]
