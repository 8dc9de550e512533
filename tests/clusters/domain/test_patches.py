from typing import Any

import pytest

from clusters.domain.patches import parse_patches, patches_json, stored_patches
from common.errors import InvalidInput
from common.files.document import Document

ADD = {"op": "add", "path": "/spec/x", "value": None}
PATCHES = [
    {"target": {"kind": "Deployment", "name": "digits-00001"}, "json6902": [ADD, {"op": "remove", "path": "/spec/y"}]},
    {"target": {"kind": "Service"}, "merge": {"metadata": {"annotations": {"team": "vision"}}}},
]


def parse(patches: Any) -> Any:
    return parse_patches(Document({"patches": patches}, "spec"))


def test_patches_are_read_and_kept_as_they_stand() -> None:
    patches = parse(PATCHES)
    assert [(each.name, each.kind, each.object) for each in patches] == [
        ("spec.patches[0]", "Deployment", "digits-00001"),
        ("spec.patches[1]", "Service", ""),
    ]
    assert patches_json(patches) == PATCHES
    assert stored_patches(PATCHES, "spec.patches") == patches


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        pytest.param({"target": {}, "merge": {}}, "spec.patches[0].target.kind", id="no kind"),
        pytest.param({"target": {"kind": "Service"}}, "spec.patches[0]", id="no change"),
        pytest.param({"target": {"kind": "Service"}, "merge": {}, "json6902": [ADD]}, "spec.patches[0]", id="both"),
        pytest.param({"target": {"kind": "Service"}, "merge": []}, "spec.patches[0].merge", id="no object"),
        pytest.param({"target": {"kind": "Service"}, "json6902": []}, "spec.patches[0].json6902", id="no operation"),
        pytest.param(
            {"target": {"kind": "Service", "all": True}, "merge": {}}, "spec.patches[0].target.all", id="more"
        ),
    ],
)
def test_a_patch_that_is_wrong_is_refused_by_its_field(patch: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse([patch])
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        pytest.param({"op": "grow", "path": "/a"}, "op", id="verb"),
        pytest.param({"op": "remove", "path": "a"}, "path", id="pointer"),
        pytest.param({"op": "move", "path": "/a"}, "from", id="from"),
        pytest.param({"op": "add", "path": "/a"}, "value", id="value"),
        pytest.param({"op": "remove", "path": "/a", "value": 1}, "value", id="too much"),
    ],
)
def test_an_operation_that_is_wrong_is_refused_by_its_field(operation: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse([{"target": {"kind": "Service"}, "json6902": [operation]}])
    assert refused.value.field == f"spec.patches[0].json6902[0].{field}"
