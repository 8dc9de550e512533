"""Nothing of the web UI is without a test that drives it in front of a whole platform."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from deployments.web.services.views import APPROVAL_VERBS, ROLLOUT_VERBS, SERVICE_VERBS
from tests.browser._support.sessions import routes

ROOT = Path(__file__).parents[3]
FOLDERS = ("tests/browser/whole", "tests/cluster")
VERBS = {
    "rollout-action": ROLLOUT_VERBS,
    "rollout-approval": APPROVAL_VERBS,
    "service-action": SERVICE_VERBS,
    "repartition-action": ("approve", "decline", "abort"),
    "upgrade-action": ("pause", "resume", "cancel"),
}
NOT_HERE = {
    "healthz": "words for a probe",
    "readyz": "words for a probe",
    "metrics": "numbers for Prometheus",
    "provider-signout": "with a real provider in tests/browser/test_sign_in.py",
}


def everything() -> Iterator[str]:
    client = Client()
    for route, path in routes():
        name = route.rpartition(":")[2]
        if name in NOT_HERE:
            continue
        if client.get(path).status_code != 405:
            yield f"GET {name}"
        if client.post(path).status_code != 405:
            yield from (f"POST {name} {verb}" for verb in VERBS[name]) if name in VERBS else [f"POST {name}"]


def marked() -> Iterator[str]:
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).glob("test_*.py")):
            module = importlib.import_module(".".join([*Path(folder).parts, file.stem]))
            for _, test in inspect.getmembers(module, inspect.isfunction):
                for mark in getattr(test, "pytestmark", []):
                    if mark.name == "drives":
                        yield from mark.args


@pytest.mark.django_db
def test_every_page_and_action_has_a_test_that_drives_it_on_a_whole_platform(settings: Settings) -> None:
    settings.ANONYMOUS_REQUESTS_PER_MINUTE = 0
    there, driven = set(everything()), set(marked())
    assert {"GET home", "POST rollout-action promote"} <= there
    assert there - driven == set(), "drive them in tests/browser/whole, and say so by its mark `drives`"
    assert driven - there == set(), "the tests name what is not there any more"
