"""A client of the test cluster's API server."""

from collections.abc import Iterator

import httpx
import pytest

from tests.charts.chart import NAMESPACE, RELEASE
from tests.cluster._support.definitions import define_other_kinds
from tests.cluster._support.namespaces import make_namespace, remove_namespaces
from tests.cluster.plane import ControlPlane

ROBOT = "fairlead-robot"
"""A ServiceAccount of the operator's own, which one of the chart's variations names."""
NAMESPACES = (NAMESPACE, "vision", "text")


@pytest.fixture(scope="module")
def client(plane: ControlPlane) -> Iterator[httpx.Client]:
    with plane.client() as admin:
        labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
        for name in NAMESPACES:
            make_namespace(admin, name, labels)
        for name in (RELEASE, ROBOT):  # which a Pod has to name one of, in dry runs too
            account = {"metadata": {"name": name}}
            admin.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", json=account).raise_for_status()
        define_other_kinds(admin)
        yield admin
        remove_namespaces(admin, NAMESPACES)  # the next module makes them again
