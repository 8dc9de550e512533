import logging

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from common.http import request_id
from common.http.request_id import RequestIdFilter, RequestIdMiddleware


def _answer(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(request_id.current())


@pytest.mark.parametrize("offered", ["abc-123", "A.b_c", "x" * 64])
def test_a_plain_word_of_the_caller_is_taken(offered: str) -> None:
    response = RequestIdMiddleware(_answer)(RequestFactory().get("/", headers={"X-Request-ID": offered}))
    assert response.content.decode() == response.headers["X-Request-ID"] == offered


@pytest.mark.parametrize("offered", ["", "a b", "x" * 65, "a\nERROR forged line", "é", "<script>"])
def test_anything_else_is_replaced(offered: str) -> None:
    assert len(request_id.choose(offered)) == 32
    assert request_id.choose(offered) != request_id.choose(offered)


def test_an_asynchronous_view_and_the_threads_it_uses_see_the_same_id() -> None:
    async def view(_request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"{request_id.current()} {await sync_to_async(request_id.current)()}")

    response = async_to_sync(RequestIdMiddleware(view))(RequestFactory().get("/", headers={"X-Request-ID": "one"}))
    assert response.content == b"one one"
    assert response.headers["X-Request-ID"] == "one"


def test_the_id_ends_with_the_request_even_if_the_view_fails() -> None:
    def fails(_request: HttpRequest) -> HttpResponse:
        raise LookupError

    with pytest.raises(LookupError):
        RequestIdMiddleware(fails)(RequestFactory().get("/", headers={"X-Request-ID": "one"}))
    assert request_id.current() == ""


def test_log_records_carry_the_id_and_a_dash_outside_of_requests() -> None:
    def record() -> str:
        made = logging.LogRecord("x", logging.INFO, "", 0, "", None, None)
        assert RequestIdFilter().filter(made)
        return str(made.request_id)  # type: ignore[attr-defined]

    inside = RequestIdMiddleware(lambda _request: HttpResponse(record()))(
        RequestFactory().get("/", headers={"X-Request-ID": "one"})
    )
    assert inside.content == b"one"
    assert record() == "-"


def test_what_django_logs_after_the_request_still_has_its_id(rf: RequestFactory) -> None:
    request = rf.get("/", headers={"X-Request-ID": "one"})
    RequestIdMiddleware(_answer)(request)
    made = logging.LogRecord("django.request", logging.WARNING, "", 0, "Not Found", None, None)
    made.request = request
    RequestIdFilter().filter(made)
    assert made.request_id == "one"  # type: ignore[attr-defined]
