"""Drift of a service: nothing kept, nothing recorded yet, features in all states."""

from django.utils import timezone

from accounts.domain.scopes import Scope
from deployments.models import InferenceService
from tests import scenes
from tests.browser.states.state import PageStates, Stage, State
from tests.feedback._support.shapes import drifted


def _page(service: InferenceService) -> str:
    return f"/services/{service.namespace}/{service.name}/feedback/drift/"


def _empty(_: Stage) -> str:
    return _page(scenes.service())


def _waiting(_: Stage) -> str:
    service = scenes.service()
    InferenceService.objects.update(kept_percent=100)
    return _page(service)


def _busy(_: Stage) -> str:
    service = scenes.service()
    InferenceService.objects.update(kept_percent=100)
    drifted(service, timezone.now())
    return _page(service)


PAGES = {
    "deployments:drift": PageStates(
        title="Drift of",
        without={"error": "what cannot be read of a request is left out"},
        states={
            "empty": State(_empty, "Drift is watched while answers are kept"),
            "empty-waiting": State(_waiting, "No requests were recorded yet"),
            "busy": State(_busy, "in the same time"),
            "busy-reader": State(_busy, "in the same time", scope=Scope.READ),
        },
    ),
}
