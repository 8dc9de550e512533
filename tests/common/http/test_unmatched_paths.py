from collections.abc import Callable

import pytest
from django.test import AsyncClient
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope

Api = Callable[..., APIClient]


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/models/", "/api/v2/models", "/api/"])
def test_an_unknown_address_of_the_api_is_answered_in_its_shape(method: str, path: str) -> None:
    answer = getattr(APIClient(), method)(path)
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "code": "not_found",
        "message": f"there is nothing at {path}; /api/v1/schema/ lists the API's addresses",
        "field": None,
        "request_id": answer.headers["X-Request-ID"],
    }


@pytest.mark.parametrize("method", ["get", "put", "delete"])
@pytest.mark.parametrize(
    "path",
    ["models/a%00b", "models/a%00b/versions", "models/a/aliases/%00", "services/a%00/b", "models?filename=%00", "m%00"],
)
def test_a_zero_byte_in_an_address_is_refused_before_it_reaches_the_database(api: Api, method: str, path: str) -> None:
    answer = getattr(api(Scope.ADMIN), method)(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_input")


async def test_a_zero_byte_is_refused_under_asgi_too() -> None:
    assert (await AsyncClient().get("/services/a%00/b/")).status_code == 400


def test_a_cursor_with_a_zero_byte_is_refused(api: Api) -> None:
    answer = api(Scope.READ).get("/api/v1/models?cursor=YQBi")
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "cursor")
