"""Attacks by skops files: what reads files, runs code or leaves an array is refused before it predicts."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime.backends import registry
from serving_runtime.common.datatypes import BYTES
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.tensors import WrittenTensor
from tests.security._support import skops_files

pytest.importorskip("skops.io", reason="skops is not installed: pip install 'fairlead[sklearn]'")
from sklearn.cluster import KMeans
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

ROWS = np.random.default_rng(1).normal(size=(80, 3))
CLASSES = (ROWS[:, 0] > 0).astype(int)
WORDS = ["good wine", "bad wine", "good food", "bad food"]
TEXT = BackendOptions({}, inputs=(WrittenTensor("text", BYTES, (1,)),))


def load(file: Path, options: BackendOptions | None = None) -> Any:
    return registry.find("sklearn", None, {}).load(file, options or BackendOptions({}))


def refused(file: Path, sentence: str, options: BackendOptions | None = None) -> None:
    with pytest.raises(ModelError, match=sentence):
        load(file, options)


@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer, HashingVectorizer], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", ["filename", "file"])
def test_a_vectorizer_that_opens_what_requests_name_is_refused(tmp_path: Path, kind: Any, way: str) -> None:
    pipeline = make_pipeline(kind(), LogisticRegression()).fit(WORDS, [1, 0, 1, 0])
    honest = skops_files.write(pipeline, tmp_path / "honest.skops")
    assert load(honest, TEXT).run([np.array([[b"good"]], dtype=object)])[0].shape == (1, 1)
    pipeline[0].set_params(input=way)
    sentence = f"{kind.__name__} has input='{way}', which is not served; input must be 'content', else each request "
    refused(skops_files.write(pipeline, tmp_path / "model.skops"), sentence, TEXT)


@pytest.mark.parametrize(
    ("parameter", "value"), [("analyzer", np.log1p), ("tokenizer", np.log1p), ("preprocessor", np.log1p)]
)
def test_a_vectorizer_with_functions_is_refused(tmp_path: Path, parameter: str, value: Any) -> None:
    vectorizer = CountVectorizer().fit(WORDS).set_params(**{parameter: value})
    refused(skops_files.write(vectorizer, tmp_path / "model.skops"), f"has {parameter}=<ufunc>|log1p as Count", TEXT)


def test_a_function_may_be_numpys_and_nothing_that_reads(tmp_path: Path) -> None:
    honest = make_pipeline(FunctionTransformer(np.expm1), StandardScaler()).fit(ROWS)
    answers = load(skops_files.write(honest, tmp_path / "honest.skops")).run([ROWS])[0]
    np.testing.assert_allclose(answers, honest.transform(ROWS))
    for function in (np.loadtxt, np.load, np.fromfile, print):
        hostile = FunctionTransformer(function).fit(ROWS)
        refused(skops_files.write(hostile, tmp_path / "model.skops"), "not known to be safe: ")
    hidden = StandardScaler().fit(ROWS)
    hidden.transform = np.expm1
    refused(skops_files.write(hidden, tmp_path / "model.skops"), "numpy.expm1 as StandardScaler.transform|in place of")


def test_a_pipeline_with_a_cache_of_pickles_is_refused(tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, CLASSES).set_params(memory=str(tmp_path))
    refused(skops_files.write(pipeline, tmp_path / "model.skops"), "Pipeline has memory=.* must be None, since a cache")


def _node(loader: str, module: str, name: str, **more: Any) -> dict[str, Any]:
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, **more}


@pytest.mark.cve("CVE-2024-37065", "CVE-2025-54412", "CVE-2025-54413", "CVE-2025-54886")
@pytest.mark.parametrize(
    "node",
    [
        pytest.param(
            _node(
                "MethodNode",
                "builtins",
                "str",
                content={"func": "format", "obj": _node("ObjectNode", "os", "_Environ")},
            ),
            id="CVE-2025-54413: a method's object of another type",
        ),
        pytest.param(
            _node("OperatorFuncNode", "operator", "methodcaller", attrs=skops_files.plain(["system"])),
            id="CVE-2025-54412: a function of operator",
        ),
        pytest.param(
            _node("OperatorFuncNode", "builtins", "int", attrs=skops_files.plain(["1"])),
            id="CVE-2025-54412: a function of operator that says it is a number",
        ),
        pytest.param(
            _node("ListNode", "sklearn.tree._tree", "Tree", content=[]), id="CVE-2025-54886: a list of another type"
        ),
        pytest.param(
            _node("ConstructorFromReduceNode", "sklearn.svm._classes", "SVC", content=skops_files.plain([])),
            id="an estimator made by its constructor",
        ),
        pytest.param(_node("FunctionNode", "os", "system"), id="CVE-2024-37065: a function"),
        pytest.param(_node("NewNode", "builtins", "int"), id="a loader that there is not"),
    ],
)
def test_a_type_under_the_loader_of_another_kind_is_refused(tmp_path: Path, node: dict[str, Any]) -> None:
    def change(schema: dict[str, Any]) -> None:
        schema["content"]["content"]["with_mean"] = node

    file = skops_files.write(StandardScaler().fit(ROWS), tmp_path / "model.skops", change)
    refused(file, "not known to be safe: ")


def test_keys_of_a_dict_that_are_made_by_a_function_are_refused(tmp_path: Path) -> None:
    def change(schema: dict[str, Any]) -> None:
        schema["content"]["key_types"]["content"][0] = _node("FunctionNode", "numpy", "negative")

    file = skops_files.write(StandardScaler().fit(ROWS), tmp_path / "model.skops", change)
    refused(file, "the keys of a dict are of no plain types")


def _with(field: str, value: int) -> Any:
    def change(nodes: Any) -> Any:
        nodes = nodes.copy()
        nodes[field][0] = value
        return nodes

    return change


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("left_child", 1 << 40, "a child is none of its"),
        ("right_child", -7, "a child is none of its"),
        ("feature", 1 << 30, "the feature 1073741824 is not one of 3"),
        ("left_child", 0, "a child is none of its"),
    ],
)
def test_a_decision_trees_nodes_that_lead_out_of_it_are_refused(
    tmp_path: Path, field: str, value: int, sentence: str
) -> None:
    trained = DecisionTreeClassifier(max_depth=3).fit(ROWS, CLASSES + (ROWS[:, 1] > 0))
    refused(skops_files.write(trained, tmp_path / "model.skops", nodes=_with(field, value)), sentence)


def test_a_decision_tree_that_is_deeper_than_it_says_is_refused(tmp_path: Path) -> None:
    def change(schema: dict[str, Any]) -> None:
        skops_files.find(schema, "tree_")[0]["content"]["content"]["max_depth"] = skops_files.plain(1)

    trained = DecisionTreeClassifier(max_depth=3).fit(ROWS, CLASSES + (ROWS[:, 1] > 0))
    refused(skops_files.write(trained, tmp_path / "model.skops", change), "it is deeper than 1 nodes")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("left", 1 << 31, "a child is none of its"),
        ("feature_idx", 1 << 30, "the feature 1073741824 is not one of 3"),
        ("is_categorical", 1, "a split is by categories of numbers"),
    ],
)
def test_histogram_trees_that_lead_out_of_their_arrays_are_refused(
    tmp_path: Path, field: str, value: int, sentence: str
) -> None:
    trained = HistGradientBoostingClassifier(max_iter=2).fit(ROWS, CLASSES)
    load(skops_files.write(trained, tmp_path / "honest.skops"))
    refused(skops_files.write(trained, tmp_path / "model.skops", nodes=_with(field, value)), sentence)


def test_gradient_boosting_of_other_classes_than_its_trees_is_refused(tmp_path: Path) -> None:
    trained = GradientBoostingClassifier(n_estimators=2).fit(ROWS, CLASSES)
    trained.n_trees_per_iteration_ = 0
    refused(skops_files.write(trained, tmp_path / "model.skops"), "its trees are of other classes")


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("_n_support", np.array([1 << 20, 3], np.int32)),
        ("support_", np.arange(100_000, dtype=np.int32)),
        ("_dual_coef_", np.zeros((1, 1))),
        ("_intercept_", np.zeros(0)),
        ("support_vectors_", np.zeros((4, 1))),
    ],
)
def test_support_vectors_that_do_not_fit_one_another_are_refused(tmp_path: Path, attribute: str, value: Any) -> None:
    trained = SVC().fit(ROWS, CLASSES)
    load(skops_files.write(trained, tmp_path / "honest.skops"))
    setattr(trained, attribute, value)
    refused(skops_files.write(trained, tmp_path / "model.skops"), "SVC: its arrays do not fit one another")


def test_neighbours_whose_tree_leads_out_of_its_rows_are_refused(tmp_path: Path) -> None:
    trained = KNeighborsClassifier(algorithm="kd_tree", leaf_size=5).fit(ROWS, CLASSES)
    load(skops_files.write(trained, tmp_path / "honest.skops"))

    def change(schema: dict[str, Any]) -> None:
        skops_files.find(schema, "_tree")[0]["content"]["content"][6] = skops_files.plain(1 << 20)

    refused(skops_files.write(trained, tmp_path / "model.skops", change), "KDTree: its arrays do not fit one another")
    trained._y = trained._y + 1_000_000
    refused(skops_files.write(trained, tmp_path / "model.skops"), "the class 100000[01] is not one of 2")


def test_centers_and_words_past_their_arrays_are_refused(tmp_path: Path) -> None:
    clusters = KMeans(2, n_init=1).fit(ROWS)
    clusters.cluster_centers_ = clusters.cluster_centers_[:, :1].copy()
    refused(skops_files.write(clusters, tmp_path / "model.skops"), "KMeans: its arrays do not fit one another")
    words = CountVectorizer().fit(WORDS)
    words.vocabulary_["good"] = 1 << 30
    refused(skops_files.write(words, tmp_path / "model.skops"), "the column of a word 1073741824 is not one of 4", TEXT)


def test_a_file_that_grows_a_thousandfold_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    file = skops_files.write(StandardScaler().fit(ROWS), tmp_path / "model.skops")
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("1.npy", "w") as entry:
        for _ in range(100):
            entry.write(bytes(1 << 20))
    refused(file, r"model\.skops has \d+ bytes and would be unpacked to 10\d+, more than 100 times as much")
