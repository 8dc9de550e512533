import errno
import logging

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.signals import got_request_exception
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from common import errors
from common.http.request_id import RequestIdMiddleware


def answer(error: Exception) -> Response:
    """Return what the API answers when a view raises `error`, under the request id `test-1`."""

    class View(APIView):
        authentication_classes = ()
        permission_classes = ()

        def get(self, request: object) -> Response:
            raise error

    request = APIRequestFactory().get("/api/v1/x", headers={"X-Request-ID": "test-1"})
    response: Response = RequestIdMiddleware(View.as_view())(request)
    return response


@pytest.mark.parametrize(
    ("error", "status", "code", "message", "field"),
    [
        pytest.param(
            errors.InvalidInput("no", field="a.b"), 400, "invalid_input", "no", "a.b", id="input with a field"
        ),
        pytest.param(errors.NotAuthenticated("who"), 401, "not_authenticated", "who", None, id="nobody"),
        pytest.param(errors.NotPermitted("no"), 403, "not_permitted", "no", None, id="somebody without the scope"),
        pytest.param(errors.NotFound("none"), 404, "not_found", "none", None, id="not there"),
        pytest.param(errors.Conflict("busy"), 409, "conflict", "busy", None, id="not now"),
        pytest.param(
            errors.InvalidTransition("no"), 409, "invalid_transition", "no", None, id="a subtype keeps its code"
        ),
        pytest.param(errors.TooLarge("big"), 413, "too_large", "big", None, id="too large"),
        pytest.param(errors.Unavailable("later"), 503, "unavailable", "later", None, id="try later"),
        pytest.param(errors.NoRoom("full"), 507, "no_room", "full", None, id="no room"),
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device", str(settings.HOME / "artifacts" / "x")),
            507,
            "no_room",
            "the disk is full: FAIRLEAD_HOME/artifacts/x cannot be written; nothing was changed and what serves goes "
            "on; make room there and try again",
            None,
            id="a full disk",
        ),
        pytest.param(Http404(), 404, "not_found", "there is nothing at this address", None, id="Django's 404"),
        pytest.param(PermissionDenied("stop"), 403, "not_permitted", "stop", None, id="Django's 403"),
        pytest.param(
            exceptions.MethodNotAllowed("PATCH"),
            405,
            "method_not_allowed",
            'Method "PATCH" not allowed.',
            None,
            id="DRF: the method",
        ),
        pytest.param(exceptions.ParseError("bad JSON"), 400, "invalid_input", "bad JSON", None, id="DRF: the body"),
        pytest.param(
            serializers.ValidationError({"name": ["This field is required."], "other": ["x"]}),
            400,
            "invalid_input",
            "name: This field is required.",
            "name",
            id="DRF: the first wrong field",
        ),
        pytest.param(
            serializers.ValidationError({"steps": [{}, {"weight": ["too much"]}]}),
            400,
            "invalid_input",
            "steps[1].weight: too much",
            "steps[1].weight",
            id="DRF: a field inside a list has a path",
        ),
        pytest.param(
            serializers.ValidationError({"non_field_errors": ["both or none"]}),
            400,
            "invalid_input",
            "both or none",
            None,
            id="DRF: no field is to blame",
        ),
    ],
)
def test_every_error_has_the_one_shape(
    error: Exception, status: int, code: str, message: str, field: str | None
) -> None:
    response = answer(error)
    assert response.status_code == status
    assert response.data == {"error": {"code": code, "message": message, "field": field, "request_id": "test-1"}}
    assert ("WWW-Authenticate" in response.headers) == (status == 401)


class Limited(serializers.Serializer[object]):
    number = serializers.IntegerField(min_value=1, max_value=9)
    text = serializers.CharField(max_length=3)
    entries = serializers.ListField(child=serializers.CharField(), max_length=2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"number": 0}, "number is too small; expected at least 1"),
        ({"number": 10}, "number is too large; expected at most 9"),
        ({"number": None}, "number is null; expected a value"),
        ({"number": "x"}, "number: A valid integer is required."),
        ({"text": ""}, "text is empty; expected text"),
        ({"text": "abcd"}, "text is too long; expected at most 3 characters"),
        ({"entries": ["a", "b", "c"]}, "entries is too long; expected at most 2 elements"),
        ({"entries": ["a", ""]}, "entries.1 is empty; expected text"),
        ({"text": ...}, "text is missing"),
    ],
)
def test_a_fault_of_a_field_names_the_field_and_what_it_takes(changed: dict[str, object], message: str) -> None:
    given = {"number": 1, "text": "abc", "entries": ["a"], **changed}
    body = Limited(data={name: value for name, value in given.items() if value is not ...})
    with pytest.raises(serializers.ValidationError) as caught:
        body.is_valid(raise_exception=True)
    assert answer(caught.value).data["error"]["message"] == message


def test_throttling_says_when_to_come_back() -> None:
    response = answer(exceptions.Throttled(wait=4.2))
    assert (response.status_code, response.headers["Retry-After"]) == (429, "5")


def test_an_unexpected_error_is_logged_once_and_tells_the_caller_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen = []

    def notice(**_: object) -> None:
        seen.append(1)

    got_request_exception.connect(notice)
    try:
        with caplog.at_level(logging.WARNING):
            response = answer(LookupError("secret detail"))
    finally:
        got_request_exception.disconnect(notice)
    assert response.status_code == 500
    assert response.data["error"]["code"] == "internal"
    assert response.data["error"]["request_id"] == "test-1"
    assert "secret detail" not in str(response.data)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [LookupError]
    assert len(caplog.records) == len(seen) == 1
    # What Django looks at before it logs an answer of 500 itself.
    assert response._has_been_logged
