import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import Conflict, FairleadError, NotFound
from integrations.artifacts.store import digest_of_folder
from integrations.clusters.base import DesiredRevision
from integrations.clusters.local.model_repository import Repository, materialise


def revision(artifact: Path, **more: object) -> DesiredRevision:
    digest = digest_of_folder(artifact) if artifact.is_dir() else "sha256:" + "0" * 64
    fields = {"replicas": 1, "weight_percent": 100, "artifact_digest": digest, **more}
    return DesiredRevision("digits-00002", "digits", "2", artifact.as_uri(), **fields)


def put(folder: Path, **files: str) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_single_file_gets_the_services_name_and_version(tmp_path):
    artifact = put(tmp_path / "a", model_onnx="M")
    materialise(revision(artifact), tmp_path / "r")
    assert files(tmp_path / "r") == {"digits/2/model.onnx": "M"}
    assert (tmp_path / "r/digits/2/model.onnx").samefile(artifact / "model.onnx")  # linked, not copied


def test_model_config_is_written(tmp_path):
    materialise(revision(put(tmp_path / "a", model_onnx="M"), model_config={"max_batch_size": 8}), tmp_path / "r")
    assert files(tmp_path / "r")["digits/config.pbtxt"] == 'name: "digits"\nmax_batch_size: 8\n'


def test_folder_in_tritons_layout_keeps_its_newest_version_and_its_labels(tmp_path):
    artifact = put(
        tmp_path / "a",
        config_pbtxt='name: "old"\nmax_batch_size: 4\n',
        labels_txt="cat",
        **{"9__model_onnx": "nine", "10__model_onnx": "ten", "10__weights__part_bin": "w"},
    )
    materialise(revision(artifact), tmp_path / "r")
    assert files(tmp_path / "r") == {
        "digits/2/model.onnx": "ten",
        "digits/2/weights/part.bin": "w",
        "digits/config.pbtxt": 'name: "digits"\nmax_batch_size: 4\n',
        "digits/labels.txt": "cat",
    }
    assert (artifact / "config.pbtxt").read_text().startswith('name: "old"')


def test_what_was_there_before_is_replaced(tmp_path):
    put(tmp_path / "r", digits__1__model_onnx="older")
    materialise(revision(put(tmp_path / "a", model_onnx="M")), tmp_path / "r")
    assert files(tmp_path / "r") == {"digits/2/model.onnx": "M"}


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        pytest.param({"artifact_digest": "sha256:" + "1" * 64}, Conflict, "was changed on disk", id="another digest"),
        pytest.param(
            {"artifact_uri": "file:///nowhere/at/all"}, NotFound, "push the model version again", id="no such folder"
        ),
        pytest.param({"artifact_uri": "s3://bucket/x"}, FairleadError, "file:///absolute/path", id="not local"),
    ],
)
def test_refusals_leave_what_is_there(tmp_path, more, error, said):
    put(tmp_path / "r", digits__1__model_onnx="older")
    wanted = replace(revision(put(tmp_path / "a", model_onnx="M")), **more)
    with pytest.raises(error, match=said):
        materialise(wanted, tmp_path / "r")
    assert files(tmp_path / "r") == {"digits/1/model.onnx": "older"}


async def test_repository_is_made_once_for_many_and_again_after_a_failure(tmp_path):
    artifact = tmp_path / "a"
    repository = Repository(revision(put(artifact, model_onnx="M")), tmp_path / "r")
    (artifact / "model.onnx").rename(tmp_path / "aside")
    with pytest.raises(Conflict):
        await repository.prepare()
    (tmp_path / "aside").rename(artifact / "model.onnx")
    await asyncio.gather(*(repository.prepare() for _ in range(4)))
    made = (tmp_path / "r/digits/2").stat().st_ino
    await repository.prepare()
    assert (tmp_path / "r/digits/2").stat().st_ino == made
    await repository.remove()
    assert not (tmp_path / "r").exists()


CODE = {
    "config_pbtxt": 'name: "old"\n',
    "1__model_onnx": "M",
    "1__sitecustomize_py": "import os",
    "1__more_pth": "import os",
    "1__weights_bin": "\x7fELF and what follows",
    "1__part__module_so": "S",
    "1__model_py": "the runtime refuses it",
}


@pytest.mark.parametrize(
    ("with_code", "stays"),
    [
        pytest.param(False, {"model.onnx", "model.py"}, id="where no models in Python run"),
        pytest.param(
            True,
            {"model.onnx", "model.py", "sitecustomize.py", "more.pth", "weights.bin", "part/module.so"},
            id="where such run",
        ),
    ],
)
def test_files_that_are_code_are_laid_out_where_code_may_run(tmp_path, with_code, stays):
    materialise(revision(put(tmp_path / "a", **CODE)), tmp_path / "r", with_code=with_code)
    assert set(files(tmp_path / "r")) == {"digits/config.pbtxt"} | {f"digits/2/{name}" for name in stays}
