"""The pages' own files, as a browser and as a download manager ask for them."""

from pathlib import Path

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings

from common.http.static import StaticFilesMiddleware

CONTENT = "body { color: navy }\n"


@pytest.fixture
def middleware(tmp_path: Path) -> StaticFilesMiddleware:
    (tmp_path / "style.css").write_text(CONTENT)

    def elsewhere(_request: HttpRequest) -> HttpResponse:
        return HttpResponse("elsewhere")

    with override_settings(STATIC_ROOT=None, STATICFILES_DIRS=[tmp_path]):
        yield StaticFilesMiddleware(elsewhere)


@pytest.mark.parametrize(
    ("headers", "status", "content"),
    [
        pytest.param({}, 200, CONTENT, id="the whole file"),
        pytest.param({"Range": "bytes=0-3"}, 206, CONTENT[:4], id="a part of it"),
        pytest.param({"Range": "bytes=900-"}, 416, "", id="a part that is not there"),
    ],
)
def test_a_file_is_sent(middleware: StaticFilesMiddleware, headers: dict[str, str], status: int, content: str) -> None:
    response = middleware(RequestFactory().get("/static/style.css", headers=headers))

    assert (response.status_code, response.content.decode()) == (status, content)
    assert not response.streaming
    if status == 200:
        assert response["Content-Type"] == 'text/css; charset="utf-8"'


def test_a_browser_that_has_it_gets_no_copy(middleware: StaticFilesMiddleware) -> None:
    first = middleware(RequestFactory().get("/static/style.css"))
    again = middleware(RequestFactory().get("/static/style.css", headers={"If-None-Match": first["ETag"]}))

    assert (again.status_code, again.content) == (304, b"")


def test_everything_else_goes_on(middleware: StaticFilesMiddleware) -> None:
    assert middleware(RequestFactory().get("/services/")).content == b"elsewhere"
