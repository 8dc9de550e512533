"""What counts as changed by hand: objects as an API server has them, with who owns which field."""

import copy
from typing import Any

import pytest

from integrations.clusters.kubernetes.observe.drift import ceded, differences, has_seal, scaled_by_hand, sealed, without
from integrations.clusters.kubernetes.observe.field_ownership import shown

MANIFEST = {
    "kind": "Deployment",
    "metadata": {"name": "a", "annotations": {"x": ""}},
    "spec": {
        "rules": [{"weight": 1}, {"weight": 2}],
        "containers": [{"name": "runtime", "image": "i:1", "env": []}, {"name": "other", "image": "o:1"}],
        "budget": 1,
    },
}
OURS = {
    "f:metadata": {"f:annotations": {"f:fairlead/applied": {}, "f:x": {}}},
    "f:spec": {
        "f:rules": {},
        "f:budget": {},
        "f:containers": {
            'k:{"name":"runtime"}': {".": {}, "f:name": {}, "f:image": {}},
            'k:{"name":"other"}': {".": {}, "f:name": {}, "f:image": {}},
        },
    },
}
IMAGE = ("f:spec", "f:containers", 'k:{"name":"runtime"}', "f:image")


def stored(manifest: dict[str, Any] = MANIFEST) -> dict[str, Any]:
    """What an API server has of the manifest: defaults added, empty values left out."""
    there = copy.deepcopy(sealed(manifest))
    there["metadata"]["annotations"].pop("x")
    there["spec"]["type"] = "ClusterIP"
    there["spec"]["containers"][0].pop("env")
    there["spec"]["rules"][0]["filters"] = []
    there["metadata"]["managedFields"] = [
        {"manager": "fairlead", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": copy.deepcopy(OURS)}
    ]
    return there


def taken(there: dict[str, Any], path: tuple[str, ...], by: str = "kubectl-edit") -> dict[str, Any]:
    """Give a field to somebody else; to nobody where `by` is empty."""
    fields: Any = there["metadata"]["managedFields"][0]["fieldsV1"]
    for key in path[:-1]:
        fields = fields[key]
    fields.pop(path[-1], None)
    theirs: dict[str, Any] = {}
    for key in reversed(path):
        theirs = {key: theirs}
    if by:
        entry = {"manager": by, "operation": "Update", "time": "2026-01-02T00:00:00Z", "fieldsV1": theirs}
        there["metadata"]["managedFields"].append(entry)
    return there


def changed_image(by: str = "kubectl-edit") -> dict[str, Any]:
    there = taken(stored(), IMAGE, by)
    there["spec"]["containers"][0]["image"] = "i:mine"
    return there


def test_defaults_and_left_out_empty_values_are_no_difference() -> None:
    assert has_seal(sealed(MANIFEST), stored())
    assert differences(sealed(MANIFEST), stored()) == []


def test_a_field_of_an_element_is_named_with_its_manager_and_time() -> None:
    (found,) = differences(sealed(MANIFEST), changed_image())
    told = found.of(MANIFEST, healed=True)
    assert (told.object, told.path) == ("Deployment/a", "spec.containers[name=runtime].image")
    assert (told.wanted, told.found, told.manager, told.at) == ('"i:1"', '"i:mine"', "kubectl-edit", 1767312000.0)


def test_a_value_that_the_server_writes_otherwise_is_ours_all_the_same() -> None:
    there = stored()
    there["spec"]["budget"] = "1000m"
    assert differences(sealed(MANIFEST), there) == []


@pytest.mark.parametrize(
    ("rules", "inside"),
    [
        pytest.param([{"weight": 1}, {"weight": 5}], "[1].weight", id="an element was changed"),
        pytest.param([{"weight": 1}], "", id="an element was taken out"),
        pytest.param([{"weight": 1}, {"weight": 2, "timeout": 1}], "", id="a field was added to an element"),
    ],
)
def test_a_list_that_is_one_value_differs_as_a_whole(rules: list[Any], inside: str) -> None:
    path = ("f:spec", "f:rules")
    there = taken(stored(), path)
    there["spec"]["rules"] = rules
    (found,) = differences(sealed(MANIFEST), there)
    assert (shown(found.path), found.inside) == ("spec.rules", inside)


def test_what_others_added_beside_our_elements_is_no_drift() -> None:
    there = stored()
    there["spec"]["containers"].insert(0, {"name": "sidecar", "image": "s:1"})
    assert differences(sealed(MANIFEST), there) == []


def test_what_was_taken_away_is_seen_though_nobody_owns_it() -> None:
    there = taken(stored(), IMAGE, by="")
    there["spec"]["containers"][0].pop("image")
    (found,) = differences(sealed(MANIFEST), there)
    assert (found.found, found.owner.manager) == (None, "")


def test_under_another_seal_only_what_others_own_is_drift() -> None:
    newer = copy.deepcopy(MANIFEST)
    newer["spec"] |= {"budget": 2, "selector": "b"}  # type: ignore[operator]
    newer["spec"]["containers"][0]["image"] = "i:2"  # type: ignore[index]
    assert not has_seal(sealed(newer), stored())
    assert differences(sealed(newer), stored()) == []
    assert [each.path for each in differences(sealed(newer), changed_image())] == [IMAGE]


def test_a_field_is_left_out_without_its_neighbours() -> None:
    left = without(MANIFEST, [IMAGE, ("f:spec", "f:budget"), ("f:spec", "f:containers", 'k:{"name":"other"}')])
    assert left["spec"] == {"rules": MANIFEST["spec"]["rules"], "containers": [{"name": "runtime", "env": []}]}  # type: ignore[index]


def test_fields_of_an_allowed_manager_are_left_to_them() -> None:
    there = changed_image(by="image-updater")
    left = ceded(sealed(MANIFEST), there, {"image-updater"})
    assert "image" not in left["spec"]["containers"][0]
    assert differences(left, there) == []
    assert ceded(sealed(MANIFEST), there, {"somebody-else"}) == sealed(MANIFEST)


@pytest.mark.parametrize(
    ("by", "told"),
    [
        pytest.param("kubectl", "kubectl", id="a person"),
        pytest.param("kube-controller-manager", None, id="an autoscaler, which is nobody's hand"),
        pytest.param("fairlead", None, id="the driver itself"),
    ],
)
def test_a_number_of_replicas_is_told_with_who_set_it(by: str, told: str | None) -> None:
    there = taken(stored(), ("f:spec", "f:replicas"), by)
    there["spec"]["replicas"] = 5
    found = scaled_by_hand(there, 2)
    assert (None if found is None else found.owner.manager) == told
