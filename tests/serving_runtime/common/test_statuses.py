"""Every kind of error has a status in each protocol's table."""

import grpc
import pytest

from serving_runtime.common.errors import ErrorKind, Forbidden, NoRoom, NotAllowed, ServingError, Unsupported
from serving_runtime.common.statuses import GRPC_STATUS, HTTP_STATUS, grpc_status, http_status
from serving_runtime.protocol.grpc.on_http2.statuses import CODES


@pytest.mark.parametrize("kind", ErrorKind)
def test_each_kind_has_a_status_in_every_protocol(kind: ErrorKind) -> None:
    assert 400 <= HTTP_STATUS[kind] < 600
    number, _ = grpc.StatusCode[GRPC_STATUS[kind]].value
    assert CODES[GRPC_STATUS[kind]] == number


@pytest.mark.parametrize(
    ("error", "http", "grpc_name"),
    [
        pytest.param(ServingError("x"), 500, "INTERNAL", id="any other error"),
        pytest.param(Forbidden("x"), 403, "UNAVAILABLE", id="a restricted call, as in Triton"),
        pytest.param(NotAllowed("x"), 403, "PERMISSION_DENIED", id="what the operator allows to no client"),
        pytest.param(NoRoom("x"), 503, "UNAVAILABLE", id="a model without room"),
        pytest.param(Unsupported("x").within("a step"), 501, "UNIMPLEMENTED", id="an error with its place"),
    ],
)
def test_errors_have_the_statuses_of_their_kind(error: ServingError, http: int, grpc_name: str) -> None:
    assert (http_status(error), grpc_status(error)) == (http, grpc_name)
