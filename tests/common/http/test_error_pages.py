"""Errors that leave a page's view."""

import errno
import logging
from collections.abc import Callable

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from common.errors import FairleadError, InvalidTransition, NotFound, NotPermitted, Unavailable
from common.http.error_pages import ErrorPageMiddleware


def answer_to(error: Exception, *, fragment: bool = False) -> HttpResponse | None:
    request = RequestFactory().get("/services/", headers={"HX-Request": "true"} if fragment else {})
    return middleware(lambda _request: HttpResponse()).process_exception(request, error)


def middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> ErrorPageMiddleware:
    return ErrorPageMiddleware(get_response)


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        pytest.param(NotFound("there is no service a/b"), 404, "There is no service a/b.", id="not found"),
        pytest.param(NotPermitted("this needs write"), 403, "This needs write.", id="not permitted"),
        pytest.param(PermissionDenied("this needs write"), 403, "This needs write.", id="Django's own refusal"),
        pytest.param(InvalidTransition("it is over"), 409, "It is over.", id="not in this phase"),
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device", "/x/y"),
            507,
            "The disk is full: y cannot be written; nothing was changed",
            id="a full disk",
        ),
        pytest.param(FairleadError("odd"), 500, "Odd.", id="one that the table does not know"),
    ],
)
def test_our_errors_become_pages(error: Exception, status: int, sentence: str) -> None:
    response = answer_to(error)

    assert response is not None
    assert response.status_code == status
    assert sentence in response.content.decode()
    assert "<main" in response.content.decode()


def test_htmx_gets_a_notice_for_the_place_of_notices() -> None:
    response = answer_to(InvalidTransition("it is over"), fragment=True)

    assert response is not None
    assert (response.status_code, response["HX-Retarget"], response["HX-Reswap"]) == (409, "#notices", "innerHTML")
    assert response.content.decode().strip() == '<p class="notice" data-level="error">It is over.</p>'


def test_other_errors_are_left_to_django() -> None:
    assert answer_to(ValueError("a fault")) is None


def test_only_what_operators_must_know_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="common.http.error_pages")
    answer_to(NotFound("there is no service a/b"))
    assert caplog.records == []

    answer_to(Unavailable("the cluster does not answer"))
    assert [record.message for record in caplog.records] == ["GET /services/: the cluster does not answer"]


def test_a_redirect_does_not_land_inside_of_a_fragment() -> None:
    request = RequestFactory().post("/rollouts/1/promote", headers={"HX-Request": "true"})
    redirect = HttpResponse(status=302, headers={"Location": "/signin/"})

    response = middleware(lambda _request: redirect)(request)

    assert (response.status_code, response["HX-Refresh"]) == (204, "true")
