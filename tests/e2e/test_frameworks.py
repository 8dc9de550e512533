"""Models of other libraries than ONNX's, all the way: pushed, checked, served through the gateway, pulled again."""

import hashlib
import json
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.e2e.harness import Platform
from tests.serving_runtime._support.conformance import CASES, rows

pytestmark = [pytest.mark.e2e, pytest.mark.long]

xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed: pip install 'fairlead[xgboost]'")
skops_io = pytest.importorskip("skops.io", reason="skops is not installed: pip install 'fairlead[sklearn]'")

GIVEN = np.random.default_rng(5).normal(size=(200, 3))
CLASSES = (GIVEN[:, 0] > 0).astype(int)

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: NAME}
spec:
  predictor:
    model:
      modelFormat: {name: FORMAT}
      storageUri: models:/NAME/1
      config: {max_batch_size: 64}
"""


def test_xgboost_and_scikit_learn_are_served_from_their_own_files(platform: Platform) -> None:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    folder = platform.home.parent
    trees = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(GIVEN, CLASSES)
    trees.get_booster().save_model(folder / "fraud.ubj")
    line = LogisticRegression().fit(GIVEN, CLASSES)
    skops_io.dump(line, folder / "churn.skops")
    expected = {"fraud": trees.predict_proba(GIVEN)[:, 1], "churn": line.predict(GIVEN)}
    for name, file, kind, other in (("fraud", "fraud.ubj", "xgboost", "onnx"), ("churn", "churn.skops", "sklearn", "")):
        pushed = platform.fairlead("models", "push", file, "--name", name, "--wait", "-o", "json")
        version = json.loads(pushed.stdout)
        assert (version["status"], version["platform"]) == ("READY", kind)
        assert version["profile"]["memory_bytes"] >= 0
        assert version["signature"]["inputs"][0]["shape"] == [-1, 3]
        if other:
            (folder / "service.yaml").write_text(SERVICE.replace("NAME", name).replace("FORMAT", other))
            refused = platform.fairlead("services", "apply", "-f", "service.yaml", check=False)
            assert refused.returncode == 1
            assert (
                "modelFormat.name is 'onnx', but fraud version 1 is a model of platform xgboost; write xgboost"
                in " ".join(refused.stderr.split())
            )
        (folder / "service.yaml").write_text(SERVICE.replace("NAME", name).replace("FORMAT", kind))
        platform.fairlead("services", "apply", "-f", "service.yaml", "--wait")
        tensor = {**version["signature"]["inputs"][0], "shape": [20, 3], "data": GIVEN[:20].ravel().tolist()}
        answer = httpx.post(
            f"http://{platform.gateway}/serving/default/{name}/v2/models/{name}/infer",
            json={"inputs": [tensor]},
            timeout=30,
        )
        assert answer.status_code == 200, answer.text
        np.testing.assert_allclose(answer.json()["outputs"][0]["data"], expected[name][:20], rtol=1e-4)
        platform.fairlead("models", "pull", name, "1", "--to", f"pulled-{name}")
        pulled = next(Path(folder / f"pulled-{name}").iterdir())
        assert digest(pulled) == digest(folder / file)


FIL = 'backend: "fil" parameters { key: "model_type" value { string_value: "xgboost_json" } }'
FOLDERS = [
    pytest.param("lightgbm", "", "lightgbm", id="LightGBM"),
    pytest.param("openvino ir", "", "openvino", id="OpenVINO's IR"),
    pytest.param("tensorflow graphdef", "", "tensorflow", id="TensorFlow's GraphDef"),
    pytest.param("xgboost json", FIL, "xgboost", id="a folder written for FIL"),
]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "config", "model_format"), FOLDERS)
def test_folders_of_other_libraries_are_served(platform: Platform, kind: str, config: str, model_format: str) -> None:
    case = CASES[kind]
    name = f"{case.backend}-{model_format}"
    folder = platform.home.parent / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config or case.config)
    expected = case.make(folder / "1")
    platform.fairlead("models", "push", name, "--name", name, "--wait")
    service = SERVICE.replace("NAME", name).replace("FORMAT", model_format)
    (platform.home.parent / "service.yaml").write_text(service)
    platform.fairlead("services", "apply", "-f", "service.yaml", "--wait")
    given = rows(5)
    url = f"http://{platform.gateway}/serving/default/{name}"
    answer = httpx.post(f"{url}/v1/models/{name}:predict", json={"instances": given.tolist()}, timeout=60)
    assert answer.status_code == 200, answer.text
    np.testing.assert_allclose(answer.json()["predictions"], expected(given)[0], rtol=1e-4, atol=1e-5)
    platform.fairlead("services", "delete", name)


def test_a_file_that_its_library_does_not_take_is_rejected_with_the_reason(platform: Platform) -> None:
    (platform.home.parent / "model.txt").write_text("to do: train it\n")
    said = platform.fairlead("models", "push", "model.txt", "--name", "notes", "--wait", check=False)
    assert said.returncode == 3
    assert "model.txt is not a LightGBM model in text form" in " ".join((said.stdout + said.stderr).split())


def test_a_model_in_python_is_rejected_with_the_setting_that_allows_it(platform: Platform) -> None:
    folder = platform.home.parent / "code"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text('backend: "python"')
    (folder / "1" / "model.py").write_text("raise SystemExit")
    said = platform.fairlead("models", "push", "code", "--name", "code", "--wait", check=False)
    assert said.returncode == 3
    assert "under fairlead up by FAIRLEAD_ALLOW_PYTHON_MODELS=true" in " ".join((said.stdout + said.stderr).split())


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
