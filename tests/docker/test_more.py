"""Further packages in an image: `requirements/more.py` pins them, the build argument MORE adds them; torch's backend
and the compiled reader of JSON want that."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.docker._support.built import BUILT, MORE, ROOT, build
from tests.docker._support.locks import pins
from tests.docker.containers import SAFE, image, infer, said, serving
from tests.docker.engine import Engine
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.images

TAG = "with-numba"
COMPILED_WITHIN_S = 120.0
MAKE_MODELS = """
import json, torch
torch.manual_seed(5)
layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).eval()
given = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 10
program = torch.export.export(layers, (given,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))
torch.export.save(program, "/models/exported/1/model.pt2")
torch.jit.save(torch.jit.trace(layers, given), "/models/scripted/1/model.pt")
print(json.dumps(layers(given).tolist()))
"""
SCRIPTED = """max_batch_size: 8
    input { name: "input" data_type: TYPE_FP32 dims: [4] }
    output { name: "output" data_type: TYPE_FP32 dims: [3] }"""


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with what numba needs beside what the runtime's image has."""
    asked = f"numba=={pins('dev.txt')['numba']}"
    command = [sys.executable, str(ROOT / "requirements" / "more.py"), "runtime-cpu", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    file = tmp_path_factory.mktemp("more") / "numba.txt"
    file.write_text(done.stdout)
    return file


@pytest.fixture(scope="module")
def enlarged(docker: Engine, pinned: Path) -> Iterator[str]:
    """Give the runtime's image with that."""
    build(docker, "runtime-cpu", tag=TAG, more=pinned)
    yield image("runtime-cpu", TAG)
    docker.docker("image", "rm", image("runtime-cpu", TAG), timeout_s=600)


def test_only_what_the_image_has_not_is_pinned_and_all_of_it_by_a_hash(pinned: Path) -> None:
    lines = pinned.read_text().splitlines()
    assert [line.partition("==")[0] for line in lines] == ["llvmlite", "numba"]
    assert all(re.fullmatch(r"[a-z-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_an_added_package_is_there_and_in_the_bill_of_materials(docker: Engine, enlarged: str) -> None:
    look = "import json, numba; bill = json.load(open('/opt/fairlead/sbom.cdx.json')); print(numba.__version__); "
    look += "print(*(each['name'] for each in bill['components']))"
    seen, listed = docker.docker("run", "--rm", *SAFE, "--entrypoint=python", enlarged, "-c", look).splitlines()
    assert seen == pins("dev.txt")["numba"]
    assert {"numba", "llvmlite", "numpy", "libc6"} <= {name.replace("_", "-") for name in listed.split()}


def test_with_numba_an_image_reads_much_json_by_compiled_code(docker: Engine, enlarged: str, tmp_path: Path) -> None:
    file = tmp_path / "models" / "same" / "1" / "model.onnx"
    file.parent.mkdir(parents=True)
    onnx_models.identity(file, shape=("N", 600_000))
    given = np.random.default_rng(0).standard_normal((1, 600_000), dtype="f4")
    with serving(docker, "runtime-cpu", tmp_path, TAG) as (container, url):
        deadline = time.monotonic() + COMPILED_WITHIN_S
        while "JSON numbers are read by compiled code" not in said(docker, container):
            assert time.monotonic() < deadline
            infer(url, "same", given)
        np.testing.assert_array_equal(infer(url, "same", given)[0].astype("f4"), given)


def test_a_package_with_another_hash_is_not_built_in(docker: Engine, pinned: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged.txt"
    forged.write_text(re.sub(r"sha256:\w+", f"sha256:{'0' * 64}", pinned.read_text()))
    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        build(docker, "runtime-cpu", tag="forged", more=forged)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["runtime-gpu", "onnx"], "there is no image 'runtime-gpu'; there are control-plane, one-machine, runtime-cpu"),
        (["runtime-cpu", "numpy==1.26.4"], "Cannot install numpy==1.26.4 and numpy=="),
    ],
    ids=["no such image", "a version that does not go with the image's"],
)
def test_what_cannot_be_pinned_is_refused_with_the_reason(arguments: list[str], sentence: str) -> None:
    command = [sys.executable, str(ROOT / "requirements" / "more.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 1
    assert sentence in done.stderr


@pytest.mark.parametrize("name", [name for name in BUILT if name != "control-plane"])
def test_models_of_torch_are_served_by_an_image_with_it(docker: Engine, name: str, tmp_path: Path) -> None:
    if "torch==" not in (Path(ROOT, MORE).read_text() if MORE else ""):
        pytest.skip(
            "torch is not in the image; docs/reference/images.md says how to build one: make test-images MORE=..."
        )
    models = tmp_path / "models"
    for model in ("exported", "scripted"):
        (models / model / "1").mkdir(parents=True)
    (models / "scripted" / "config.pbtxt").write_text(SCRIPTED)
    for each in (tmp_path, *tmp_path.parents[:2], *models.glob("*/1")):
        each.chmod(0o777)
    make = ["run", "--rm", *SAFE, "-v", f"{models}:/models", "--entrypoint=python", image(name), "-c", MAKE_MODELS]
    expected = json.loads(docker.docker(*make, timeout_s=600).splitlines()[-1])
    given = np.arange(12, dtype="f4").reshape(3, 4) / 10
    with serving(docker, name, tmp_path, more=("--allow-python-models=true",)) as (_, url):
        for model in ("exported", "scripted"):
            np.testing.assert_allclose(infer(url, model, given)[0], expected, rtol=1e-5, atol=1e-6)
