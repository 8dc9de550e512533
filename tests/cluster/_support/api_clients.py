"""A client of the test cluster's API server."""

from collections.abc import Iterator

import httpx
import pytest

from tests.charts.chart import NAMESPACE, RELEASE
from tests.cluster._support.definitions import define_other_kinds
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import until

ROBOT = "fairlead-robot"
"""A ServiceAccount of the operator's own, which one of the chart's variations names."""
NAMESPACES = (NAMESPACE, "vision", "text")


@pytest.fixture(scope="module")
def client(plane: ControlPlane) -> Iterator[httpx.Client]:
    with plane.client() as admin:
        for name in NAMESPACES:
            labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
            admin.post("/api/v1/namespaces", json={"metadata": {"name": name, "labels": labels}}).raise_for_status()
        for name in (RELEASE, ROBOT):  # which a Pod has to name one of, in dry runs too
            account = {"metadata": {"name": name}}
            admin.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", json=account).raise_for_status()
        define_other_kinds(admin)
        yield admin
        for name in NAMESPACES:
            admin.delete(f"/api/v1/namespaces/{name}")
        for name in NAMESPACES:  # the next module makes them again
            until(lambda: admin.get(f"/api/v1/namespaces/{name}").status_code == 404, f"{name} is gone")  # noqa: B023
