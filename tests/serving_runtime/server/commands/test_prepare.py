"""A stored model becomes a repository, and only if it is the one that was stored."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from integrations.artifacts.store import digest_of_folder
from integrations.clusters.local.model_repository import lay_out as laid_out_locally
from serving_runtime.__main__ import main
from serving_runtime.config import text
from serving_runtime.server.commands.prepare import REFUSED


def stored(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def prepare(artifact: Path, repository: Path, *flags: str, digest: str = "", config: object = None) -> int:
    digest = digest or digest_of_folder(artifact)
    named = [f"--artifact={artifact}", f"--digest={digest}", "--name=digits", "--version=3", *flags]
    return main(["prepare", *named, f"--config={json.dumps(config or {})}", f"--model-repository={repository}"])


CASES = [
    pytest.param({"model_onnx": "M"}, {}, id="one file"),
    pytest.param({"model_onnx": "M"}, {"max_batch_size": 8}, id="one file, and a configuration"),
    pytest.param(
        {
            "config_pbtxt": 'name: "old"\nmax_batch_size: 4',
            "labels_txt": "cat",
            "9__model_onnx": "n",
            "10__a__b_bin": "t",
        },
        {"dynamic_batching": {"max_queue_delay_microseconds": 100}, "parameters": {"k": {"string_value": "v"}}},
        id="a folder in Triton's layout: its newest version, its labels, its other fields",
    ),
    pytest.param(
        {"e__config_pbtxt": 'name: "e"', "e__labels_txt": "cat", "a__config_pbtxt": "", "a__1__model_onnx": "A"},
        {"max_batch_size": 2},
        id="an ensemble with a model of its steps",
    ),
    pytest.param({"config_pbtxt": "max_batch_size: 4", "1__m_onnx": "M"}, {"max_batch_size": 0}, id="a field set to 0"),
]


@pytest.mark.parametrize(("files", "config"), CASES)
def test_pods_and_the_local_cluster_serve_the_same_files(
    files: dict[str, str], config: dict[str, object], tmp_path: Path
) -> None:
    artifact = stored(tmp_path / "artifact", **files)
    assert prepare(artifact, tmp_path / "pod", config=config) == 0
    laid_out_locally(artifact, tmp_path / "local" / "digits", version="3", config=config)
    assert _contents(tmp_path / "pod") == _contents(tmp_path / "local")
    first, second = (text.read(tmp_path / place / "digits" / "config.pbtxt", "digits") for place in ("pod", "local"))
    assert first == second


CODE = {
    "e__config_pbtxt": 'name: "e"',
    "e__sitecustomize_py": "import os",
    "a__config_pbtxt": "",
    "a__1__model_onnx": "A",
    "a__1__weights_bin": "\x7fELF and what follows",
    "a__1__part__more_pth": "import os",
    "a__1__model_py": "the runtime refuses it",
}


@pytest.mark.parametrize("allowed", [True, False], ids=["code allowed", "no code"])
def test_pods_and_the_local_cluster_leave_out_the_same_code(tmp_path: Path, allowed: bool) -> None:
    artifact = stored(tmp_path / "artifact", **CODE)
    assert prepare(artifact, tmp_path / "pod", f"--allow-code-files={allowed}") == 0
    laid_out_locally(artifact, tmp_path / "local" / "digits", version="3", config={}, with_code=allowed)
    assert _contents(tmp_path / "pod") == _contents(tmp_path / "local")
    code = {"digits/sitecustomize.py", "a/1/weights.bin", "a/1/part/more.pth"}
    assert code & _contents(tmp_path / "pod").keys() == (code if allowed else set())


def test_a_model_of_an_ensembles_steps_cannot_have_the_served_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = stored(tmp_path / "artifact", e__config_pbtxt="", digits__1__model_onnx="M")
    assert prepare(artifact, tmp_path / "pod") == REFUSED
    assert "is called digits, which is what the ensemble is served as" in capsys.readouterr().err


def test_an_ensemble_is_served_under_its_own_name(tmp_path: Path) -> None:
    artifact = stored(tmp_path / "artifact", digits__config_pbtxt='name: "digits"', a__1__model_onnx="A")
    assert prepare(artifact, tmp_path / "pod") == 0
    laid_out_locally(artifact, tmp_path / "local" / "digits", version="3", config={})
    assert _contents(tmp_path / "pod") == _contents(tmp_path / "local")
    assert (tmp_path / "pod" / "digits" / "3").is_dir()


def test_running_it_again_repairs_what_an_interrupted_run_left(tmp_path: Path) -> None:
    artifact = stored(tmp_path / "artifact", model_onnx="M")
    stored(tmp_path / "r" / "digits", half_written="x")
    assert prepare(artifact, tmp_path / "r") == 0
    assert _contents(tmp_path / "r") == {"digits/3/model.onnx": "M"}


def test_configurations_by_name_get_the_services_name_and_fields_too(tmp_path: Path) -> None:
    files = {
        "1__model_onnx": "M",
        "configs__small_pbtxt": 'name: "old"\nmax_batch_size: 2',
        "config_pbtxt": 'name: "old"',
    }
    artifact = stored(tmp_path / "artifact", **files)
    assert prepare(artifact, tmp_path / "r", config={"dynamic_batching": {}}) == 0
    own = text.read(tmp_path / "r" / "digits" / "configs" / "small.pbtxt", "digits")
    assert (own.name, own.max_batch_size, own.HasField("dynamic_batching")) == ("digits", 2, True)
    assert "old" in (artifact / "configs" / "small.pbtxt").read_text()


def test_other_files_than_those_of_the_digest_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = stored(tmp_path / "artifact", model_onnx="M")
    assert prepare(artifact, tmp_path / "r", digest="sha256:" + "0" * 64) == 2
    assert "is not the one that was stored" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_field_that_no_configuration_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = stored(tmp_path / "artifact", model_onnx="M")
    assert prepare(artifact, tmp_path / "r", config={"max_bach_size": 4}) == REFUSED
    assert "max_bach_size" in capsys.readouterr().err


class Requests(http.server.BaseHTTPRequestHandler):
    """Has one request, for who shows the token; the first time it is not to be had."""

    tries = 0

    def do_GET(self) -> None:
        Requests.tries += 1
        known = self.path == "/request" and self.headers["Authorization"] == "Bearer secret"
        status = 503 if Requests.tries == 1 else 200 if known else 404
        body = b"a row" if status == 200 else b'{"error": {"message": "no such request"}}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Requests.tries = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Requests) as there:
        thread = threading.Thread(target=there.serve_forever, name="requests")
        thread.start()
        yield f"http://127.0.0.1:{there.server_port}"
        there.shutdown()
        thread.join(60)


def test_a_request_is_fetched_with_a_token_and_asked_for_again(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = stored(tmp_path / "artifact", model_onnx="M")
    (tmp_path / "token").write_text("secret\n")
    file = tmp_path / "request.json"
    flags = [f"--request={file}", f"--token-file={tmp_path / 'token'}"]
    assert prepare(artifact, tmp_path / "r", f"--request-from={url}/request", *flags) == 0
    assert (file.read_bytes(), Requests.tries) == (b"a row", 2)
    file.unlink()
    assert prepare(artifact, tmp_path / "r", f"--request-from={url}/other", *flags) == 2
    assert f"{url}/other answered 404 Not Found: no such request" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize("flag", ["--request=request.json", "--request-from=http://127.0.0.1:1/"])
def test_a_request_is_fetched_from_somewhere_into_a_file(tmp_path: Path, flag: str) -> None:
    artifact = stored(tmp_path / "artifact", model_onnx="M")
    with pytest.raises(SystemExit) as ended:
        prepare(artifact, tmp_path / "r", flag)
    assert ended.value.code == 1


def _contents(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "config.pbtxt")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}
