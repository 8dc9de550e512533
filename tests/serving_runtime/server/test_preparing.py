"""A stored model becomes a repository, and only if it is the one that was stored."""

import json
from pathlib import Path

import pytest

from integrations.artifacts import digest_of_folder
from integrations.clusters.local.materialise import lay_out as laid_out_locally
from serving_runtime.__main__ import main
from serving_runtime.config import text


def stored(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def prepare(artifact: Path, repository: Path, *, digest: str = "", config: object = None) -> int:
    digest = digest or digest_of_folder(artifact)
    named = [f"--artifact={artifact}", f"--digest={digest}", "--name=digits", "--version=3"]
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


def test_a_model_of_an_ensembles_steps_cannot_have_the_served_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = stored(tmp_path / "artifact", e__config_pbtxt="", digits__1__model_onnx="M")
    assert prepare(artifact, tmp_path / "pod") == 2
    assert "is called digits, which is what the ensemble is served as" in capsys.readouterr().err


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
    assert prepare(artifact, tmp_path / "r", config={"max_bach_size": 4}) == 2
    assert "max_bach_size" in capsys.readouterr().err


def _contents(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "config.pbtxt")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}
