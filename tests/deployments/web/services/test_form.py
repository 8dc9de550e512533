"""The fields of a service file as a form."""

import copy
from typing import Any

import pytest

from common.files.editor.form import changed, filled
from deployments.web.services.form import fields_of

FIELDS = fields_of(("careful", "quick"))
DOCUMENT: dict[str, Any] = {
    "metadata": {"name": "digits"},
    "spec": {
        "predictor": {"minReplicas": 2, "scaleTarget": 0.5, "model": {"storageUri": "models:/digits/1"}},
        "rollout": {"policy": "careful"},
    },
}


def values(**changes: str) -> dict[str, str]:
    return {each.field.name: each.value for each in filled(DOCUMENT, FIELDS)} | changes


def test_the_form_says_what_the_file_says() -> None:
    assert values() == {
        "model": "models:/digits/1",
        "policy": "careful",
        "least": "2",
        "most": "",
        "metric": "",
        "target": "0.5",
        "concurrency": "",
    }


def test_a_form_that_nobody_touched_changes_nothing() -> None:
    assert changed(DOCUMENT, FIELDS, values()) == DOCUMENT


@pytest.mark.parametrize(
    ("field", "text", "path", "value"),
    [
        pytest.param("most", "4", ("spec", "predictor", "maxReplicas"), 4, id="a number"),
        pytest.param("target", "2.5", ("spec", "predictor", "scaleTarget"), 2.5, id="a part of one"),
        pytest.param("most", "many", ("spec", "predictor", "maxReplicas"), "many", id="no number, to be refused"),
        pytest.param("policy", "quick", ("spec", "rollout", "policy"), "quick", id="a choice"),
        pytest.param(
            "model", " models:/d/2 ", ("spec", "predictor", "model", "storageUri"), "models:/d/2", id="a text"
        ),
        pytest.param("least", "", ("spec", "predictor", "minReplicas"), None, id="emptied"),
    ],
)
def test_what_is_typed_goes_where_it_belongs(field: str, text: str, path: tuple[str, ...], value: object) -> None:
    before = copy.deepcopy(DOCUMENT)
    found: Any = changed(DOCUMENT, FIELDS, values(**{field: text}))
    for name in path:
        found = found.get(name) if found is not None else None
    assert found == value
    assert before == DOCUMENT


def test_a_part_that_the_file_lacks_is_made_where_it_is_needed() -> None:
    bare = {"spec": {"predictor": {}}}
    assert changed(bare, FIELDS, {"policy": "quick"}) == {"spec": {"predictor": {}, "rollout": {"policy": "quick"}}}
    assert changed(bare, FIELDS, {"policy": ""}) == bare
