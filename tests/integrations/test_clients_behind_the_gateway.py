"""Triton's own clients behind the gateway: they read configuration and statistics of a service and change nothing."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.integrations._support.runtimes import RUNTIME
from tests.servers.clients import PerfAnalyzer, perf_analyzer
from tests.servers.parts import MissingPartError, skip_or_fail

PROTOCOLS = pytest.mark.parametrize("protocol", ["http", "grpc"])
NAMED = "fairlead-service:default/digits"

CLIENT = """
import sys
from google.protobuf.json_format import MessageToDict
from tritonclient.utils import InferenceServerException
protocol, address = sys.argv[1:]
if protocol == "http":
    from tritonclient.http import InferenceServerClient
else:
    from tritonclient.grpc import InferenceServerClient
client = InferenceServerClient(address)
named = {"headers": {"fairlead-service": "default/digits"}}

def plain(answer):
    return answer if protocol == "http" else MessageToDict(answer, preserving_proto_field_name=True)

def refused(call, *args, **kwargs):
    try:
        call(*args, **kwargs, **named)
    except InferenceServerException as error:
        assert error.status() in ("404", "StatusCode.UNIMPLEMENTED"), (call, error)
    else:
        raise AssertionError(f"{call} was let through")
"""

READS = """
extensions = plain(client.get_server_metadata(**named))["extensions"]
assert {"model_configuration", "statistics"} <= set(extensions), extensions
for version in ("", "1"):
    config = plain(client.get_model_config("digits", version, **named))
    config = config if protocol == "http" else config["config"]
    assert config["name"] == "digits", config
    (model,) = plain(client.get_inference_statistics("digits", version, **named))["model_stats"]
    assert (model["name"], model["version"]) == ("digits", "1"), model
(model,) = plain(client.get_inference_statistics(**named))["model_stats"]
assert model["name"] == "digits", model
"""

CHANGES_NOTHING = """
extensions = plain(client.get_server_metadata(**named))["extensions"]
assert not {"model_repository", "logging", "trace", "system_shared_memory"} & set(extensions), extensions
refused(client.get_model_repository_index)
refused(client.load_model, "digits")
refused(client.unload_model, "digits")
refused(client.get_log_settings)
refused(client.update_log_settings, {"log_verbose_level": 1})
refused(client.get_trace_settings)
refused(client.update_trace_settings, settings={"trace_level": ["TIMESTAMPS"]})
refused(client.update_trace_settings, "digits", {"trace_level": ["TIMESTAMPS"]})
refused(client.get_system_shared_memory_status)
refused(client.register_system_shared_memory, "x", "/x", 8)
refused(client.unregister_system_shared_memory)
refused(client.get_cuda_shared_memory_status)
refused(client.unregister_cuda_shared_memory)
assert client.is_model_ready("digits", **named)
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, make_cluster: Any) -> Iterator[str]:
    """Address of a gateway with one service of the real runtime."""
    cluster = make_cluster(tmp_path_factory.mktemp("clients"))
    try:
        cluster.start(runtime=RUNTIME)
        cluster.apply(1, cluster.revision(1, 100))
        cluster.until_ready(1)
        cluster.until_weights(r1=100)
        yield urlsplit(cluster.url).netloc
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def analyzer() -> PerfAnalyzer:
    try:
        return perf_analyzer()
    except MissingPartError as missing:
        skip_or_fail(missing)


@PROTOCOLS
@pytest.mark.parametrize("does", [pytest.param(READS, id="reads"), pytest.param(CHANGES_NOTHING, id="changes nothing")])
def test_a_client_of_triton(gateway: str, protocol: str, does: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT + does, protocol, gateway],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@PROTOCOLS
def test_perf_analyzer_measures_a_service(gateway: str, analyzer: PerfAnalyzer, protocol: str) -> None:
    """It reads metadata, configuration and statistics before it measures, and statistics again afterwards."""
    windows = ("--measurement-mode=count_windows", "--measurement-request-count=50", "--stability-percentage=999")
    analyzer.measured("digits", protocol, gateway, "-H", NAMED, *windows)
