"""PyTorch's files are code (torch.export evaluates expressions while it loads): refused before torch is imported."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from serving_runtime.__main__ import main
from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings


@pytest.mark.cve("CVE-2025-32434")
@pytest.mark.parametrize("filename", ["model.pt2", "model.pt"])
def test_programs_are_refused_unless_code_is_allowed(
    tmp_path: Path, filename: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m" / "1" / filename
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no archive")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["inspect", str(tmp_path / "m"), "--json"]) == 2
    told = capsys.readouterr().out
    assert "backend 'pytorch' opens programs of torch.export and TorchScript, which can read and write files" in told
    assert "allow it by --allow-python-models=true, under fairlead up by FAIRLEAD_ALLOW_PYTHON_MODELS=true" in told
    assert main(["inspect", str(tmp_path / "m"), "--json", "--allow-python-models"]) == 2
    assert "which is not allowed here" not in capsys.readouterr().out


def test_a_program_that_came_with_a_request_is_refused_wherever_code_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "m" / "1" / "model.pt2"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no archive")
    settings = LoadSettings(allow_python_models=True)
    folder = replace(repository.model_folder(tmp_path / "m"), temporary=True)
    with pytest.raises(
        ModelError, match="its files came with the request; code runs only where it lies in a model rep"
    ):
        load_model.open_versions(load_model.plan(folder, settings), (1,), settings, {})
