"""Which ensembles follow a model, and which models go with an ensemble, as tables."""

import pytest

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.lifecycle.ensemble_dependencies import dependents, orphans
from serving_runtime.engine.lifecycle.states import Model

pytestmark = pytest.mark.feature("C10")


def model(name: str, *parts: str, state: str = "serving", by_name: bool = False, own_config: bool = False) -> Model:
    made = Model(name)
    made.parts = parts
    made.by_name = by_name
    made.tried = None if own_config else {}
    if state == "serving":
        made.serving = {1: None}  # type: ignore[dict-item]
    elif state == "broken":
        made.failed(ModelError("why"))
    return made


@pytest.mark.parametrize(
    ("models", "found"),
    [
        pytest.param([model("e", "a", "b"), model("f", "b")], "ef", id="all that have it as a part"),
        pytest.param([model("e", "c"), model("b")], "", id="no others"),
        pytest.param([model("e", "b", state="broken")], "e", id="one that failed for want of it"),
        pytest.param([model("e", "b", state="unloaded")], "", id="not one that nobody wants"),
        pytest.param([model("e", "b", own_config=True)], "", id="not one with a config of a request's own"),
    ],
)
def test_ensembles_follow_their_models(models: list[Model], found: str) -> None:
    assert "".join(dependents(["b"], models)) == found


@pytest.mark.parametrize(
    ("models", "found"),
    [
        pytest.param([model("a"), model("b")], "ab", id="loaded for the ensemble alone"),
        pytest.param([model("a", by_name=True), model("b")], "b", id="not one that was asked for"),
        pytest.param([model("a"), model("b"), model("f", "a")], "b", id="not one that another ensemble needs"),
        pytest.param([model("a"), model("f", "a", state="unloaded")], "a", id="nobody who is gone needs it"),
    ],
)
def test_models_go_with_the_ensemble_that_they_were_loaded_for(models: list[Model], found: str) -> None:
    assert "".join(orphans(["a", "b"], {one.name: one for one in models})) == found
