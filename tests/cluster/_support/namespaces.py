"""Namespaces of tests on a control plane that several files share."""

from collections.abc import Iterable, Mapping
from http.client import NOT_FOUND

import httpx

from tests.integrations._support.runtimes import until

_PATH = "/api/v1/namespaces"
_WITHIN_S = 120


def make_namespace(admin: httpx.Client, name: str, labels: Mapping[str, str] | None = None) -> None:
    """Make a namespace; one of this name that a failed test left is deleted first."""
    remove_namespaces(admin, (name,))
    admin.post(_PATH, json={"metadata": {"name": name, "labels": dict(labels or {})}}).raise_for_status()


def remove_namespaces(admin: httpx.Client, names: Iterable[str]) -> None:
    """Delete namespaces and wait until they are gone; those that are not there are left out."""
    there = [name for name in names if admin.delete(f"{_PATH}/{name}").status_code != NOT_FOUND]
    for name in there:
        until(lambda: admin.get(f"{_PATH}/{name}").status_code == NOT_FOUND, f"{name} is gone", _WITHIN_S)  # noqa: B023
