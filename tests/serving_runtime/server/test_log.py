"""The log of real servers: flags, and settings changed while they run, over both protocols."""

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import command, server


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    onnx_models.mlp(root / "mlp" / "1" / "model.onnx")
    return root


def requests(log: str) -> list[str]:
    """Return the calls that have a line of their own."""
    return re.findall(r"call='(?:GET )?([^']*)'", log)


@pytest.mark.feature("E11")
def test_lines_per_request_are_turned_on_and_off_while_the_server_runs(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with server(repository, f"--log-file={log}", scratch=tmp_path) as process, httpx.Client() as client:
        client.get(f"{process.url}/v2?silent")
        answer = client.post(f"{process.url}/v2/logging", json={"log_verbose_level": 1, "log_format": "ISO8601"})
        assert answer.json() == {
            "log_file": str(log),
            "log_info": True,
            "log_warning": True,
            "log_error": True,
            "log_verbose_level": 1,
            "log_format": "ISO8601",
        }
        assert client.get(f"{process.url}/v2", headers={"x-request-id": "abc"}).status_code == 200
        refused = client.post(f"{process.url}/v2/logging", json={"log_info": False, "log_format": "xml"})
        assert refused.status_code == 400
        assert "default, ISO8601 or json, found 'xml'" in refused.json()["error"]
        assert client.post(f"{process.url}/v2/logging", json={"log_verbose_level": 0}).json()["log_info"] is True
        client.get(f"{process.url}/v2/models")
        assert client.get(f"{process.url}/v2/logging").json()["log_verbose_level"] == 0
    lines = log.read_text().splitlines()
    (asked,) = [line for line in lines if "request_id=abc" in line]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ DEBUG ", asked)
    assert "/v2/models" not in requests(log.read_text())


TRITONCLIENT = """
import sys
import tritonclient.grpc as v2
client = v2.InferenceServerClient(f"127.0.0.1:{sys.argv[1]}")
assert "logging" in client.get_server_metadata().extensions
shown = client.update_log_settings({"log_verbose_level": 3, "log_warning": False}).settings
assert shown["log_verbose_level"].uint32_param == 3 and shown["log_warning"].bool_param is False
assert shown["log_format"].string_param == "default" and shown["log_info"].bool_param is True
client.is_model_ready("mlp")
client.get_model_metadata("mlp")
try:
    client.update_log_settings({"log_file": "elsewhere"})
    raise AssertionError("changed")
except v2.InferenceServerException as error:
    assert "chosen by --log-file" in error.message(), error
assert client.get_log_settings(as_json=True)["settings"]["log_verbose_level"]["uint32_param"] == 3
"""


@pytest.mark.feature("E11")
def test_tritonclient_changes_the_settings_over_grpc(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with server(repository, f"--log-file={log}", scratch=tmp_path) as process:
        arguments = [sys.executable, "-c", TRITONCLIENT, str(process.grpc)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    assert "call='ModelMetadata'" in log.read_text()


def test_levels_are_turned_off_by_flags(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    flags = [f"--log-file={log}", "--log-info=false", "--log-verbose=1", "--log-format=ISO8601"]
    with server(repository, *flags, scratch=tmp_path) as process:
        httpx.get(f"{process.url}/v2")
    assert " INFO " not in log.read_text()
    assert requests(log.read_text()) == ["/v2"]


def test_a_log_that_cannot_be_written_prevents_the_start(repository: Path) -> None:
    arguments = command(repository, "--log-file=/nowhere/log")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "--log-file /nowhere/log cannot be written: No such file or directory" in done.stderr
