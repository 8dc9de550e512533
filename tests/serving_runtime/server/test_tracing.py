"""Followed requests of real servers: spans in a real OTLP/HTTP collector, and Triton's JSON file."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest

from serving_runtime import proto
from serving_runtime.server.flags import command_line
from tests._support.collector import PARENT, TRACE_ID, TRACEPARENT, UNSAMPLED, Collector, attributes, collecting
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, command, server


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mlp; picky, which fails for 99."""
    root = tmp_path_factory.mktemp("repository")
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8") / "1" / "model.onnx")
    onnx_models.picky(root / "picky" / "1" / "model.onnx")
    return root


def infer(process: ServerProcess, **headers: str) -> None:
    content = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0] * 8}]}
    assert httpx.post(f"{process.url}/v2/models/mlp/infer", json=content, headers=headers).status_code == 200


def opentelemetry(collector: Collector, *settings: str) -> list[str]:
    given = ("mode=opentelemetry", f"opentelemetry,url={collector.url}", "level=TIMESTAMPS", *settings)
    return [f"--trace-config={setting}" for setting in (*given, "opentelemetry,bsp_schedule_delay=20")]


def test_spans_continue_the_callers_trace_over_http_and_grpc(
    repository: Path, collector: Collector, tmp_path: Path
) -> None:
    flags = opentelemetry(collector, "opentelemetry,resource=deployment.environment=test")
    with server(repository, *flags, "--id=here", scratch=tmp_path) as process:
        infer(process)  # the rate is 1000: not followed
        infer(process, traceparent=TRACEPARENT, **{"x-request-id": "abc"})
        resource, spans = collector.spans(3)
        assert (resource["service.name"], resource["deployment.environment"]) == ("here", "test")
        by_name = {span.name: span for span in spans}
        root, waited, computed = by_name["InferRequest"], by_name["queue"], by_name["compute"]
        assert {span.trace_id.hex() for span in spans} == {TRACE_ID}
        assert root.parent_span_id.hex() == PARENT
        assert waited.parent_span_id == computed.parent_span_id == root.span_id
        assert attributes(root) == {
            "triton.model_name": "mlp", "triton.model_version": "1", "triton.request_id": "abc",
        }  # fmt: skip
        assert root.start_time_unix_nano <= waited.start_time_unix_nano <= waited.end_time_unix_nano
        assert waited.end_time_unix_nano == computed.start_time_unix_nano <= computed.end_time_unix_nano
        assert computed.end_time_unix_nano <= root.end_time_unix_nano

        request = proto.ModelInferRequest(model_name="picky")
        request.inputs.add(name="x", datatype="INT64", shape=[1, 1])
        request.raw_input_contents.append(np.array([99], "<i8").tobytes())
        with grpc.insecure_channel(f"127.0.0.1:{process.grpc}") as channel, pytest.raises(grpc.RpcError):
            channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(
                request.SerializeToString(), metadata=(("traceparent", TRACEPARENT),), timeout=20
            )
        _, (failed,) = collector.spans(1)
        assert (failed.name, failed.trace_id.hex()) == ("InferRequest", TRACE_ID)
        assert failed.status.code == 2
        assert "the model failed" in failed.status.message


def test_without_a_caller_every_so_many_requests_are_followed(
    repository: Path, collector: Collector, tmp_path: Path
) -> None:
    with server(repository, *opentelemetry(collector, "rate=3", "count=2"), scratch=tmp_path) as process:
        for _ in range(12):
            infer(process)
        _, spans = collector.spans(6)
        roots = [span for span in spans if span.name == "InferRequest"]
        assert len({span.trace_id for span in roots}) == 2
        assert not any(span.parent_span_id for span in roots)
        process.terminate()
        assert process.process.wait(20) == 0
    assert collector.requests.empty()


def test_spans_that_are_left_are_sent_when_the_server_stops(
    repository: Path, collector: Collector, tmp_path: Path
) -> None:
    flags = [*opentelemetry(collector, "rate=1")[:-1], "--trace-config=opentelemetry,bsp_schedule_delay=3600000"]
    with server(repository, *flags, scratch=tmp_path) as process:
        infer(process)
        process.terminate()
        assert process.process.wait(20) == 0
    collector.spans(3)


def test_the_environment_names_the_collector_and_only_what_the_caller_samples_is_traced(
    repository: Path, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "fairlead.service=default/mlp")
    with server(repository, "--trace-config=rate=1", scratch=tmp_path) as process:
        infer(process, traceparent=UNSAMPLED)
        infer(process, traceparent=TRACEPARENT)
        process.terminate()
        assert process.process.wait(20) == 0
    resource, spans = collector.spans(3)
    assert resource["fairlead.service"] == "default/mlp"
    assert {span.trace_id.hex() for span in spans} == {TRACE_ID}
    assert collector.requests.empty()


def test_a_collector_that_is_away_delays_nothing_and_is_reported_once(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_OTLP_ENDPOINT", "http://127.0.0.1:9")
    log, settings = tmp_path / "log", ("rate=1", "opentelemetry,bsp_schedule_delay=20")
    flags = [f"--log-file={log}", *(f"--trace-config={setting}" for setting in settings)]
    with server(repository, *flags, scratch=tmp_path) as process:
        infer(process)
        deadline = time.monotonic() + 30
        while "takes no spans" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            infer(process)
            time.sleep(0.05)
        process.terminate()
        assert process.process.wait(10) == 0
    assert log.read_text().count("takes no spans") == 1
    assert "Connection refused" in log.read_text()


def test_an_endpoint_that_is_none_prevents_the_start(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_OTLP_ENDPOINT", "collector:4318")
    done = subprocess.run(command(repository), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "FAIRLEAD_OTLP_ENDPOINT is 'collector:4318'; expected the base address" in done.stderr


@pytest.mark.feature("E10")
def test_tritons_file_holds_the_moments_of_each_followed_request(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with (
        server(repository, f"--trace-config=triton,file={file}", scratch=tmp_path) as process,
        httpx.Client() as client,
    ):
        infer(process)
        assert not file.exists()
        every, one = f"{process.url}/v2/trace/setting", f"{process.url}/v2/models/mlp/trace/setting"
        changed = client.post(one, json={"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}).json()
        assert changed == {
            "trace_level": ["TIMESTAMPS"],
            "trace_rate": "1",
            "trace_count": "-1",
            "trace_mode": "triton",
            "log_frequency": "0",
            "trace_file": str(file),
        }
        assert client.get(every).json()["trace_level"] == ["OFF"]
        for _ in range(2):
            infer(process)
        assert client.post(one, json={"trace_level": None}).json()["trace_level"] == ["OFF"]
        infer(process)
        assert client.get(f"{process.url}/v2/models/nobody/trace/setting").status_code == 404
        refused = client.post(every, json={"trace_rate": "never"})
        assert (refused.status_code, refused.json()["error"]) == (
            400,
            "trace_rate must be a number >= 1, found 'never'",
        )
    entries = json.loads(file.read_text())
    assert [entry["id"] for entry in entries if "model_name" in entry] == [1, 2]
    stamps = [stamp for entry in entries if entry["id"] == 1 for stamp in entry.get("timestamps", [])]
    names = [
        "REQUEST_START",
        "QUEUE_START",
        "COMPUTE_START",
        "COMPUTE_INPUT_END",
        "COMPUTE_OUTPUT_START",
        "COMPUTE_END",
    ]
    assert [stamp["name"] for stamp in stamps] == [*names, "REQUEST_END"]
    moments = [stamp["ns"] for stamp in stamps]
    assert moments == sorted(moments)


def test_a_log_frequency_begins_a_new_file(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    given = ("level=TIMESTAMPS", "rate=1", f"triton,file={file}", "triton,log-frequency=2")
    with server(repository, *[f"--trace-config={setting}" for setting in given], scratch=tmp_path) as process:
        for _ in range(3):
            infer(process)
        process.terminate()
        assert process.process.wait(30) == 0  # what is written is whole once the server has ended
    found = [json.loads((tmp_path / f"trace.json.{number}").read_text()) for number in (0, 1)]
    assert [[entry["id"] for entry in entries if "model_name" in entry] for entries in found] == [[1, 2], [3]]


TRITONCLIENT = """
import sys
import tritonclient.grpc as v2
client = v2.InferenceServerClient(f"127.0.0.1:{sys.argv[1]}")
assert "trace" in client.get_server_metadata().extensions
settings = {"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "5"}
shown = client.update_trace_settings(model_name="mlp", settings=settings).settings
assert list(shown["trace_level"].value) == ["TIMESTAMPS"] and list(shown["trace_count"].value) == ["5"], shown
assert list(client.get_trace_settings().settings["trace_level"].value) == ["OFF"]
client.update_trace_settings(settings={"trace_rate": "9"})
cleared = client.update_trace_settings(model_name="mlp", settings={"trace_rate": None}).settings
assert list(cleared["trace_rate"].value) == ["9"], cleared
try:
    client.update_trace_settings(settings={"trace_level": ["TENSOR"]})
    raise AssertionError("changed")
except v2.InferenceServerException as error:
    assert "trace_level must be OFF, or of TIMESTAMPS and TENSORS" in error.message(), error
"""


@pytest.mark.feature("E10")
def test_tritonclient_changes_the_settings_over_grpc(repository: Path, tmp_path: Path) -> None:
    with server(repository, scratch=tmp_path) as process:
        arguments = [sys.executable, "-c", TRITONCLIENT, str(process.grpc)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


def test_the_level_is_added_up_and_must_fit_the_mode(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--model-repository=models", "--trace-config=level=TENSORS", "--trace-config=level=TIMESTAMPS"]
    assert command_line.parse(given).trace.settings.levels == ("TIMESTAMPS", "TENSORS")
    with pytest.raises(SystemExit):
        command_line.parse([*given, "--trace-config=mode=opentelemetry"])
    assert "trace_level TENSORS needs mode=triton" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        pytest.param("mode=jaeger", "the mode is triton or opentelemetry", id="a mode"),
        pytest.param("level=MAX", "trace_level must be OFF, or of TIMESTAMPS and TENSORS", id="a level"),
        pytest.param("triton,url=x", "there is no such setting", id="a setting of the other mode"),
        pytest.param("triton,file=/nowhere/trace.json", "nothing can be written to /nowhere", id="a folder"),
        pytest.param("opentelemetry,url=grpc://x", "sent over http or https", id="another protocol"),
        pytest.param("opentelemetry,resource=x", "a resource is KEY=VALUE", id="a resource"),
        pytest.param("opentelemetry,bsp_max_queue_size=0", "must be a number >= 1", id="a number"),
        pytest.param("rate", "'rate' is not NAME=VALUE", id="no value"),
    ],
)
def test_what_trace_config_cannot_mean_is_refused(repository: Path, setting: str, sentence: str) -> None:
    arguments = command(repository, f"--trace-config={setting}")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
