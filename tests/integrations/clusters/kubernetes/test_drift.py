from typing import Any

import pytest

from integrations.clusters.kubernetes.drift import is_applied, sealed

MANIFEST = {"metadata": {"name": "a", "annotations": {"x": ""}}, "spec": {"ports": [{"port": 1}], "labels": {"l": "1"}}}


def stored(**spec: Any) -> dict[str, Any]:
    """What an API server would have of it: defaults added, an empty value left out."""
    manifest = sealed(MANIFEST)
    annotations = {name: value for name, value in manifest["metadata"]["annotations"].items() if value}
    metadata = {**manifest["metadata"], "annotations": annotations, "uid": "u"}
    ports = [{"port": 1, "protocol": "TCP"}]
    return {"metadata": metadata, "spec": {"ports": ports, "labels": {"l": "1"}, "type": "ClusterIP", **spec}}


@pytest.mark.parametrize(
    ("there", "same"),
    [
        pytest.param(stored(), True, id="as it was applied, with defaults"),
        pytest.param(stored(labels={"l": "2"}), False, id="a value was changed by hand"),
        pytest.param(stored(ports=[]), False, id="an element was taken out"),
        pytest.param(stored(ports=[{"port": 1}, {"port": 2}]), False, id="an element was added"),
    ],
)
def test_what_is_there_is_compared_with_what_is_wanted(there: dict[str, Any], same: bool) -> None:
    assert is_applied(sealed(MANIFEST), there) is same


def test_a_field_that_is_wanted_no_more_is_seen() -> None:
    without = {**MANIFEST, "spec": {"ports": MANIFEST["spec"]["ports"]}}
    assert not is_applied(sealed(without), stored())
