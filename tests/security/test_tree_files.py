"""Attacks by files of trees: what would lead XGBoost and LightGBM out of their arrays is refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime.__main__ import main
from serving_runtime.backends.trees import lightgbm_file, ubjson, xgboost_file
from serving_runtime.common.errors import ModelError

xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed: pip install 'fairlead[xgboost]'")
lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed: pip install 'fairlead[lightgbm]'")

RANDOM = np.random.default_rng(3)
ROWS = RANDOM.normal(size=(300, 4)).astype("f4")
ROWS[:, 1] = RANDOM.integers(0, 20, 300)
TARGET = ((ROWS[:, 0] > 0) ^ (ROWS[:, 1] % 3 == 0)).astype(int)


@pytest.fixture(scope="module")
def xgb() -> Any:
    rows = xgboost.DMatrix(ROWS, TARGET, feature_types=["q", "c", "q", "q"], enable_categorical=True)
    return xgboost.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1}, rows, 3)


@pytest.fixture(scope="module")
def lgb() -> str:
    options = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "min_data_per_group": 5}
    rows = lightgbm.Dataset(ROWS, TARGET, categorical_feature=[1])
    text: str = lightgbm.train({**options, "cat_smooth": 1.0}, rows, 3).model_to_string()
    return text


def _set(key: str, value: Any, at: int = 0) -> Callable[[dict[str, Any]], None]:
    def change(learner: dict[str, Any]) -> None:
        learner["gradient_booster"]["model"]["trees"][0][key][at] = value

    return change


def _cut(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda learner: learner["gradient_booster"]["model"]["trees"][0][key].pop()


def _say(place: str, key: str, value: str) -> Callable[[dict[str, Any]], None]:
    return lambda learner: learner[place].update({key: value})


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(_set("left_children", 1 << 20), "a child is none of its", id="a child that there is not"),
        pytest.param(_set("left_children", -5), "a child is none of its", id="a child below zero"),
        pytest.param(_set("left_children", 0, 1), "a child is none of its", id="a circle to the root"),
        pytest.param(_set("left_children", 2), "two parents", id="a node with two parents"),
        pytest.param(_set("split_indices", 1 << 20), "the feature 1048576 is not one of 4", id="feature"),
        pytest.param(_set("parents", 2, 1), "a child has another parent", id="parent"),
        pytest.param(_set("split_type", 3), "the kind of split 3", id="kind"),
        pytest.param(_set("categories_segments", 1 << 30), "past the end of their list", id="categories"),
        pytest.param(_set("categories", 1 << 30), "the category 1073741824", id="a category"),
        pytest.param(_cut("split_conditions"), "split_conditions has", id="an array that is short"),
        pytest.param(_cut("categories_nodes"), "not those that it lists", id="nodes of categories"),
        pytest.param(_say("learner_model_param", "num_feature", "1"), "not of the model's 1 features", id="features"),
        pytest.param(_say("learner_model_param", "num_class", "7"), "", id="classes"),
        pytest.param(_say("objective", "name", "x\n{}"), "objective is none", id="objective"),
        pytest.param(_say("learner_model_param", "num_feature", "-1"), "is of the wrong kind", id="a size below zero"),
    ],
)
def test_an_xgboost_file_that_leads_out_of_its_trees_is_refused(
    xgb: Any, form: str, change: Callable[[dict[str, Any]], None], sentence: str
) -> None:
    document = json.loads(bytes(xgb.save_raw("json")))
    if sentence:
        change(document["learner"])
    else:
        document["learner"]["gradient_booster"]["model"]["tree_info"][0] = 1
        sentence = "a tree's class 1 is not one of 1"
    content = json.dumps(document).encode() if form == "json" else _ubj(document)
    with pytest.raises(ModelError, match=re.escape(sentence)):
        xgboost_file.check(content, "model.ubj")


def test_honest_xgboost_files_pass_and_broken_ones_are_no_models(xgb: Any) -> None:
    for form in ("json", "ubj"):
        content = bytes(xgb.save_raw(form))
        xgboost_file.check(content, "model")
        for end in range(1, len(content), len(content) // 40):
            with pytest.raises(ModelError, match="is not an XGBoost model"):
                xgboost_file.check(content[:end], "model")
    assert ubjson.decode(bytes(xgb.save_raw("ubj"))).keys() == {"learner", "version"}
    twice = b'{"learner":{},"learner":{}}'
    with pytest.raises(ModelError, match="a name twice"):
        xgboost_file.check(twice, "model.json")


def _ubj(value: Any) -> bytes:
    """Return UBJSON without types of arrays, as xgboost reads it too."""
    if isinstance(value, dict):
        return b"{" + b"".join(_text(key) + _ubj(each) for key, each in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#L" + len(value).to_bytes(8, "big") + b"".join(map(_ubj, value))
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, int):
        return b"L" + value.to_bytes(8, "big", signed=True)
    return b"d" + np.array(value, ">f4").tobytes()


def _text(value: str) -> bytes:
    return b"L" + len(value.encode()).to_bytes(8, "big") + value.encode()


def _line(text: str, key: str, change: Callable[[str], str]) -> str:
    """Return a model with the first tree's line of a key changed, and as long as its head says."""
    start = text.index("Tree=0")
    match = re.search(rf"^{key}=(.*)$", text[start:], re.MULTILINE)
    assert match, key
    values = change(match[1])
    head = re.sub(
        r"tree_sizes=(\d+)", lambda size: f"tree_sizes={int(size[1]) + len(values) - len(match[1])}", text[:start]
    )
    return head + text[start : start + match.start(1)] + values + text[start + match.end(1) :]


def _first(value: str) -> Callable[[str], str]:
    return lambda line: " ".join([value, *line.split(" ")[1:]])


@pytest.mark.parametrize(
    ("key", "change", "sentence"),
    [
        pytest.param("left_child", _first("1000000"), "a child is none of its", id="a child that there is not"),
        pytest.param("right_child", _first("-1000000"), "a child is none of its", id="a leaf that there is not"),
        pytest.param("left_child", _first("0"), "a child is none of its", id="a circle"),
        pytest.param("split_feature", _first("99"), "the feature 99 is not one of 4", id="feature"),
        pytest.param("num_leaves", _first("1000000"), "is not of", id="more leaves than values"),
        pytest.param("num_leaves", _first("-3"), "it has no leaf", id="leaves below zero"),
        pytest.param("leaf_value", lambda line: line + " 1", "the line leaf_value is not of", id="a value more"),
        pytest.param("leaf_value", lambda line: line + "xx", "the line leaf_value is not of", id="two bytes more"),
        pytest.param("threshold", lambda line: line + "\r", "the line threshold is not of", id="another end of line"),
        pytest.param("num_cat", _first("0"), "the set of categories", id="no sets"),
        pytest.param("num_cat", _first("50"), "the line cat_boundaries is not", id="more sets"),
        pytest.param("cat_boundaries", lambda line: f"{line.rpartition(' ')[0]} 9999", "not parts of", id="bits"),
        pytest.param("shrinkage", lambda _: "1\nshrinkage=1", "or twice", id="a line twice"),
        pytest.param("is_linear", _first("1"), "its linear leaves|line num_features", id="linear leaves"),
    ],
)
def test_a_lightgbm_file_that_leads_out_of_its_trees_is_refused(
    lgb: str, tmp_path: Path, key: str, change: Callable[[str], str], sentence: str
) -> None:
    file = tmp_path / "model.txt"
    file.write_text(lgb)
    lightgbm_file.read_head(file)
    file.write_bytes(_line(lgb, key, change).encode())
    with pytest.raises(ModelError, match=sentence):
        lightgbm_file.read_head(file)


def test_a_lightgbm_objective_of_more_classes_than_trees_is_refused(lgb: str, tmp_path: Path) -> None:
    for objective in ("multiclass num_class:900000", "binary\x01"):
        (tmp_path / "model.txt").write_text(re.sub("objective=.*", f"objective={objective}", lgb, count=1))
        with pytest.raises(ModelError, match=r"not of the same number of classes|is none"):
            lightgbm_file.read_head(tmp_path / "model.txt")


def test_a_lightgbm_head_that_another_tree_ends_is_refused(lgb: str, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text(lgb.replace("\n\nTree=0", "\n\nTree=s\n\nTree=0", 1))
    with pytest.raises(ModelError, match=r"cut off or was edited|does not begin where the head says"):
        lightgbm_file.read_head(tmp_path / "model.txt")


def test_lightgbm_parameters_that_are_cut_off_are_refused(lgb: str, tmp_path: Path) -> None:
    start = lgb.index("parameters:")
    assert "[seed: " in lgb
    for text in (lgb[: lgb.index("[seed: ") + 3], lgb.replace("[seed: ", "[seed "), lgb[: start + 11]):
        (tmp_path / "model.txt").write_text(text)
        with pytest.raises(ModelError, match="its parameters are not lines"):
            lightgbm_file.read_head(tmp_path / "model.txt")


def test_inspect_answers_with_a_sentence(
    xgb: Any, lgb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(bytes(xgb.save_raw("json")))
    _set("left_children", 1 << 20)(document["learner"])
    for name, content in (
        ("xgboost.json", json.dumps(document)),
        ("model.txt", _line(lgb, "left_child", _first("1000000"))),
    ):
        file = tmp_path / name.partition(".")[0] / "1" / name
        file.parent.mkdir(parents=True)
        file.write_text(content)
        assert main(["inspect", str(file.parents[1]), "--json"]) == 2
        assert "a child is none of its" in capsys.readouterr().out


def test_a_zero_byte_behind_a_lightgbm_models_trees_is_refused(lgb: str, tmp_path: Path) -> None:
    """LightGBM looks for the end of such a line for ever."""
    sound = lgb.encode()
    file = tmp_path / "model.txt"
    file.write_bytes(sound)
    lightgbm_file.read_head(file)
    file.write_bytes(sound.replace(b"\npandas_categorical", b"\npandas_\0categorical"))
    with pytest.raises(ModelError, match="bytes that are no text"):
        lightgbm_file.read_head(file)
