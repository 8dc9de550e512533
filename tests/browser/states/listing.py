"""Every page that there is, in every state that it can be in, and the addresses that lead to no page.

`test_every_page.py` looks at all of them, and fails where the URL configuration has an address that is neither here nor
there: whoever adds a page adds its states.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from accounts.domain.scopes import Scope
from tests import scenes
from tests.browser.states import (
    of_access,
    of_accounts,
    of_drift,
    of_feedback,
    of_fleet,
    of_home,
    of_models,
    of_platform,
    of_pools,
    of_recordings,
    of_services,
    of_usage,
    of_works,
)
from tests.browser.states.state import PageStates, Stage, State

PAGES: dict[str, PageStates] = {
    **of_home.PAGES,
    **of_services.PAGES,
    **of_recordings.PAGES,
    **of_drift.PAGES,
    **of_feedback.PAGES,
    **of_models.PAGES,
    **of_platform.PAGES,
    **of_pools.PAGES,
    **of_fleet.PAGES,
    **of_accounts.PAGES,
    **of_access.PAGES,
    **of_works.PAGES,
    **of_usage.PAGES,
}

NO_PAGES = {
    "healthz": "words for a probe",
    "readyz": "words for a probe",
    "metrics": "numbers for Prometheus",
    "deployments:home-stream": "events of Home",
    "deployments:service-list-stream": "events of the list of services",
    "deployments:service-stream": "events of a service's page",
    "deployments:rollout-stream": "events of a rollout's page",
    "deployments:cluster-gpus-stream": "events of the page of GPUs",
    "deployments:build-stream": "events of a build's page",
    "deployments:tuning-stream": "events of a tuning's page",
    "deployments:recording-stream": "events of a recording's page",
    "deployments:replay-stream": "events of a replay's page",
    "deployments:delivery": "the answer to a test of a webhook, a part of its page",
    "accounts:audit-export": "a file",
    "deployments:usage-export": "a file",
    "accounts:provider-back": "leads on to the page that was wanted; what goes wrong is shown by the sign-in page",
    "accounts:provider-signout": "leads to the provider; what goes wrong is shown by the sign-in page",
}
"""Addresses that answer GET with something else than a page of their own, and with what."""


def _nowhere(_: Stage) -> str:
    return "/nowhere/"


def _no_such_service(_: Stage) -> str:
    return "/services/default/" + "n" * 57 + "/"


def _log(_: Stage) -> str:
    return "/audit/"


def _check(_: Stage) -> str:
    scenes.service()
    return "/platform/clusters/local/check"


OF_NONE: dict[str, PageStates] = {
    "not-found": PageStates(
        title="There is nothing here",
        states={
            "error": State(_nowhere, "No page has this address", status=404, is_refused=True),
            "error-no-service": State(_no_such_service, "There is no service", status=404, is_refused=True),
        },
    ),
    "not-allowed": PageStates(
        title="You may not do this",
        states={
            "error": State(_log, "This needs", scope=Scope.READ, status=403, is_refused=True),
            "error-check": State(_check, "This needs", scope=Scope.READ, status=403, is_refused=True),
        },
    ),
}
"""What stands in the place of a page."""


@dataclass(frozen=True, slots=True)
class Look:
    """A page in one of its states."""

    page: str
    name: str
    state: State
    title: str

    def __str__(self) -> str:
        return f"{self.page.partition(':')[2] or self.page}-{self.name}"


def looks() -> Iterator[Look]:
    """Yield every page in every state."""
    for page, of in {**PAGES, **OF_NONE}.items():
        for name, state in of.states.items():
            yield Look(page, name, state, state.title or of.title)
