"""Trees of XGBoost and LightGBM: what their files say, and FIL's parameters on top of it."""

from pathlib import Path

import numpy as np
import pytest

from serving_runtime.backends import registry
from serving_runtime.common.errors import ModelError
from serving_runtime.config import text
from serving_runtime.config.model import BackendOptions
from tests.serving_runtime.onnx_models import configure

xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed: pip install 'fairlead[xgboost]'")
lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed: pip install 'fairlead[lightgbm]'")

RANDOM = np.random.default_rng(3)
GIVEN = RANDOM.normal(size=(120, 4)).astype("f4")
BINARY = (GIVEN[:, 0] + 0.4 * RANDOM.normal(size=120) > 0).astype(int)
TARGET = GIVEN[:, 0].copy()
CLASSES = BINARY + (GIVEN[:, 1] > 0.5)


def written(tmp_path: Path, config: str) -> BackendOptions:
    return BackendOptions.from_message(text.read(configure(tmp_path / "m", config) / "config.pbtxt", "m"))


def load(backend: str, file: Path, **parameters: str):
    return registry.find(backend, None, {}).load(file, BackendOptions(parameters))


def xgb(tmp_path: Path, objective: str, labels: np.ndarray, **more: object) -> tuple[Path, object]:
    trained = xgboost.train({"objective": objective, "nthread": 1, **more}, xgboost.DMatrix(GIVEN, labels), 5)
    trained.save_model(tmp_path / "xgboost.ubj")
    return tmp_path / "xgboost.ubj", trained


def lgb(tmp_path: Path, objective: str, labels: np.ndarray, **more: object) -> tuple[Path, object]:
    chosen = {"objective": objective, "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, **more}
    trained = lightgbm.train(chosen, lightgbm.Dataset(GIVEN, labels), 5)
    trained.save_model(tmp_path / "model.txt")
    return tmp_path / "model.txt", trained


BINARY_MODELS = pytest.mark.parametrize(
    ("backend", "make", "objective"), [("xgboost", xgb, "binary:logistic"), ("lightgbm", lgb, "binary")]
)


@BINARY_MODELS
def test_two_classes_are_the_seconds_probability_unless_asked_otherwise(
    tmp_path: Path, backend: str, make, objective: str
) -> None:
    file, _ = make(tmp_path, objective, BINARY)
    (second,) = load(backend, file).run([GIVEN])
    assert second.shape == (120, 1)
    assert ((second[:, 0] > 0.5) == BINARY).mean() > 0.75
    (both,) = load(backend, file, predict_proba="true").run([GIVEN])
    np.testing.assert_allclose(both, np.concatenate([1 - second, second], axis=1), atol=1e-6)
    (chosen,) = load(backend, file, output_class="true").run([GIVEN])
    assert chosen.tolist() == (second > 0.5).tolist()
    highest = float(np.sort(np.unique(second))[-2:].mean())
    (careful,) = load(backend, file, output_class="true", threshold=str(highest)).run([GIVEN])
    assert careful.tolist() == (second > highest).tolist()
    assert 0 < careful.sum() < chosen.sum()


@pytest.mark.parametrize(
    ("backend", "make", "objective", "answers_class"),
    [
        ("xgboost", xgb, "multi:softprob", False),
        ("xgboost", xgb, "multi:softmax", True),
        ("lightgbm", lgb, "multiclass", False),
    ],
)
def test_several_classes(tmp_path: Path, backend: str, make, objective: str, answers_class: bool) -> None:
    file, trained = make(tmp_path, objective, CLASSES, num_class=3)
    (probabilities,) = load(backend, file, predict_proba="true").run([GIVEN])
    assert probabilities.shape == (120, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    (chosen,) = load(backend, file, output_class="true").run([GIVEN])
    assert chosen[:, 0].tolist() == probabilities.argmax(axis=1).tolist()
    own = trained.predict(xgboost.DMatrix(GIVEN) if backend == "xgboost" else GIVEN)
    (plain,) = load(backend, file).run([GIVEN])
    np.testing.assert_allclose(plain, own.reshape(120, -1), atol=1e-6)
    assert plain.shape[1] == (1 if answers_class else 3)


@pytest.mark.parametrize(
    ("backend", "make", "objective"), [("xgboost", xgb, "reg:squarederror"), ("lightgbm", lgb, "regression")]
)
def test_a_regression_has_no_classes_to_ask_for(tmp_path: Path, backend: str, make, objective: str) -> None:
    file, _ = make(tmp_path, objective, TARGET)
    assert load(backend, file).run([GIVEN])[0].shape == (120, 1)
    with pytest.raises(ModelError, match="parameter 'predict_proba' needs a classifier"):
        load(backend, file, predict_proba="true")


def test_several_quantiles_are_as_many_columns(tmp_path: Path) -> None:
    file, _ = xgb(tmp_path, "reg:quantileerror", TARGET, quantile_alpha=[0.1, 0.5, 0.9])
    assert load("xgboost", file).signature.outputs[0].shape == (-1, 3)


def test_a_booster_without_trees_is_refused_by_its_name(tmp_path: Path) -> None:
    file, _ = xgb(tmp_path, "reg:squarederror", TARGET, booster="gblinear")
    with pytest.raises(ModelError, match="a model of the booster gblinear; served are gbtree and dart"):
        load("xgboost", file)


@BINARY_MODELS
def test_missing_values_go_the_way_that_training_chose(tmp_path: Path, backend: str, make, objective: str) -> None:
    file, trained = make(tmp_path, objective, BINARY)
    holes = np.where(RANDOM.random(GIVEN.shape) < 0.3, np.float32("nan"), GIVEN)
    own = trained.predict(xgboost.DMatrix(holes) if backend == "xgboost" else holes)
    np.testing.assert_allclose(load(backend, file).run([holes])[0][:, 0], own, atol=1e-6)


def test_lightgbm_answers_to_the_last_digit_where_the_config_says_so(tmp_path: Path) -> None:
    file, trained = lgb(tmp_path, "regression", TARGET)
    config = 'input { name: "rows" data_type: TYPE_FP64 } output { name: "score" data_type: TYPE_FP64 }'
    model = registry.find("lightgbm", None, {}).load(file, written(tmp_path, config))
    assert [(spec.name, spec.datatype.name) for spec in (*model.signature.inputs, *model.signature.outputs)] == [
        ("rows", "FP64"),
        ("score", "FP64"),
    ]
    exact = GIVEN.astype("f8")
    assert model.run([exact])[0][:, 0].tolist() == trained.predict(exact).tolist()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param('input { name: "a" } input { name: "b" }', "it has one input, the rows of features", id="inputs"),
        pytest.param(
            'input { name: "a" data_type: TYPE_STRING }', "input 'a' is TYPE_STRING in config.pbtxt", id="text"
        ),
        pytest.param('output { name: "a" } output { name: "b" }', "it has one output; config.pbtxt lists 2", id="two"),
    ],
)
def test_tensors_that_trees_do_not_have_are_refused(tmp_path: Path, config: str, sentence: str) -> None:
    file, _ = xgb(tmp_path, "binary:logistic", BINARY)
    with pytest.raises(ModelError, match=sentence):
        registry.find("xgboost", None, {}).load(file, written(tmp_path, config))


def test_a_lightgbm_file_with_a_tree_taken_out_is_refused_before_lightgbm_sees_it(tmp_path: Path) -> None:
    file, _ = lgb(tmp_path, "regression", TARGET)
    content = file.read_text()
    start, end = content.index("Tree=2"), content.index("Tree=3")
    file.write_text(content[:start] + content[end:])
    with pytest.raises(ModelError, match=r"model\.txt is cut off or was edited"):
        load("lightgbm", file)


@pytest.mark.feature("B1")
@pytest.mark.parametrize(
    ("backend", "make", "objective", "model_type"),
    [("xgboost", xgb, "binary:logistic", "xgboost_ubj"), ("lightgbm", lgb, "binary", "lightgbm")],
)
def test_a_config_written_for_fil_is_served(tmp_path: Path, backend, make, objective: str, model_type: str) -> None:
    file, _ = make(tmp_path, objective, BINARY)
    chosen = {"model_type": model_type, "output_class": "true", "predict_proba": "true", "storage_type": "AUTO"}
    model = load("fil", file, **chosen)
    assert model.signature.outputs[0].name == "output__0"
    expected = load(backend, file, predict_proba="true").run([GIVEN])
    assert model.run([GIVEN])[0].tolist() == expected[0].tolist()


def test_what_only_treelite_reads_is_refused(tmp_path: Path) -> None:
    file, _ = xgb(tmp_path, "binary:logistic", BINARY)
    with pytest.raises(ModelError, match="parameter 'model_type' is 'treelite_checkpoint'; served are lightgbm, xgb"):
        load("fil", file, model_type="treelite_checkpoint")
