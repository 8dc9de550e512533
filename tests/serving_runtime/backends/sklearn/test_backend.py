"""scikit-learn estimators: which methods answer, of which datatypes, and what is not trusted."""

import pickle
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from serving_runtime.backends import registry
from serving_runtime.common.errors import InvalidArgument, ModelError
from serving_runtime.config import text
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings
from tests.serving_runtime.onnx_models import configure

skops_io = pytest.importorskip("skops.io", reason="skops is not installed: pip install 'fairlead[sklearn]'")

GIVEN = np.random.default_rng(1).normal(size=(90, 3))
LABELS = np.where(GIVEN[:, 0] > 0, "up", "down")


class Foreign(BaseEstimator):
    """An estimator that nobody knows."""

    def predict(self, rows):
        return rows


def load(tmp_path: Path, estimator, config: str = "", **settings: str):
    skops_io.dump(estimator, tmp_path / "model.skops")
    options = BackendOptions.from_message(text.read(configure(tmp_path / "m", config) / "config.pbtxt", "m"))
    return registry.find("sklearn", None, settings).load(tmp_path / "model.skops", options)


def outputs(model) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(spec.name, spec.datatype.name, spec.shape) for spec in model.signature.outputs]


def test_labels_that_are_texts_are_answered_as_texts(tmp_path: Path) -> None:
    trained = make_pipeline(StandardScaler(), LogisticRegression()).fit(GIVEN, LABELS)
    model = load(tmp_path, trained)
    assert outputs(model) == [("predict", "BYTES", (-1, 1))]
    assert [row[0].decode() for row in model.run([GIVEN])[0]] == trained.predict(GIVEN).tolist()


def test_the_config_lists_the_methods_to_call(tmp_path: Path) -> None:
    trained = LogisticRegression().fit(GIVEN, LABELS)
    model = load(tmp_path, trained, 'output [ { name: "decision_function" }, { name: "predict_proba" } ]')
    assert outputs(model) == [("decision_function", "FP64", (-1, 1)), ("predict_proba", "FP64", (-1, 2))]
    scores, probabilities = model.run([GIVEN])
    np.testing.assert_allclose(scores[:, 0], trained.decision_function(GIVEN))
    np.testing.assert_allclose(probabilities, trained.predict_proba(GIVEN))


def test_a_method_that_the_estimator_has_not_is_refused_with_those_it_has(tmp_path: Path) -> None:
    trained = GradientBoostingRegressor(n_estimators=3).fit(GIVEN, GIVEN[:, 0])
    with pytest.raises(ModelError, match=r"output 'predict_proba' is not a method of this model; there are predict$"):
        load(tmp_path, trained, 'output { name: "predict_proba" }')


def test_texts_go_in_where_the_config_says_so(tmp_path: Path) -> None:
    documents = ["good wine", "bad wine", "good food", "bad food"]
    trained = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(documents, [1, 0, 1, 0])
    with pytest.raises(ModelError, match=r"list the input in config\.pbtxt"):
        load(tmp_path, trained)
    model = load(tmp_path, trained, 'input { name: "text" data_type: TYPE_STRING dims: [1] }')
    assert model.run([np.array([[b"good"], [b"bad"]], dtype=object)])[0].tolist() == [[1], [0]]
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        model.run([np.array([[b"\xff"]], dtype=object)])


def test_a_transformer_answers_what_it_makes_of_the_rows_sparse_or_not(tmp_path: Path) -> None:
    trained = OneHotEncoder(handle_unknown="ignore").fit(np.array([[0], [1], [2]]))
    model = load(tmp_path, trained)
    assert outputs(model) == [("transform", "FP64", (-1, 3))]
    assert model.run([np.array([[1.0], [7.0]])])[0].tolist() == [[0, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(), HistGradientBoostingClassifier(max_iter=3), GradientBoostingRegressor(n_estimators=3)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_of_compiled_parts_are_served(tmp_path: Path, estimator) -> None:
    trained = estimator.fit(GIVEN, (GIVEN[:, 0] > 0).astype(int))
    np.testing.assert_allclose(load(tmp_path, trained).run([GIVEN])[0][:, 0], trained.predict(GIVEN))


def test_a_type_that_nobody_knows_is_refused_by_its_name_unless_the_operator_trusts_it(tmp_path: Path) -> None:
    estimator = Foreign()
    estimator.n_features_in_ = 2
    name = f"{Foreign.__module__}.Foreign"
    with pytest.raises(ModelError, match=f"types that are not known to be safe: {name}; who starts the server may"):
        load(tmp_path, estimator)
    model = load(tmp_path, estimator, **{"trusted-types": f"another.Type,{name}"})
    assert model.run([np.ones((1, 2))])[0].tolist() == [[1, 1]]


class Unpickled:
    """Leaves a file behind wherever it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def opened(folder: Path, *, allow: bool, temporary: bool = False):
    settings = LoadSettings(allow_python_models=allow)
    found = replace(repository.model_folder(folder), temporary=temporary)
    return load_model.open_versions(load_model.plan(found, settings), (1,), settings, {})[1]


@pytest.mark.parametrize("filename", ["model.joblib", "model.pkl", "model.pickle"])
def test_a_pickle_is_opened_only_where_code_is_allowed(tmp_path: Path, filename: str) -> None:
    trained = LogisticRegression().fit(GIVEN, LABELS)
    folder, mark = tmp_path / "m", tmp_path / "was-run"
    (folder / "1").mkdir(parents=True)
    write = joblib.dump if filename == "model.joblib" else lambda given, file: file.write_bytes(pickle.dumps(given))
    write(Unpickled(mark), folder / "1" / filename)
    for allow, temporary in ((False, False), (True, True)):
        with pytest.raises(ModelError, match=f"{filename} is a pickle, which is code: it is opened only from a model "):
            opened(folder, allow=allow, temporary=temporary)
    assert not mark.exists()
    write(trained, folder / "1" / filename)
    answers = opened(folder, allow=True).model.run([GIVEN])[0]
    assert [row[0].decode() for row in answers] == trained.predict(GIVEN).tolist()
    (folder / "1" / filename).write_bytes(b"no pickle")
    with pytest.raises(ModelError, match=f"{filename} cannot be unpickled: "):
        opened(folder, allow=True)


def test_what_is_no_estimator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="it is a dict, which has none of the methods predict, "):
        load(tmp_path, {"a": 1})


def test_it_runs_as_many_jobs_as_the_config_says_not_as_it_was_trained_with(tmp_path: Path) -> None:
    trained = make_pipeline(StandardScaler(), KNeighborsClassifier(n_jobs=-1)).fit(GIVEN, LABELS)
    model = load(tmp_path, trained)
    assert model._predict._calls[0].__self__.get_params()["kneighborsclassifier__n_jobs"] == 1
