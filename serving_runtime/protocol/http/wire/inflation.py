"""Decompression of request bodies: small ones at once, others in threads."""

import asyncio
from collections.abc import Callable

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.protocol import inflating
from serving_runtime.protocol.http.wire.message import Request, Response, error_response, text_error
from serving_runtime.protocol.request_memory import LARGE_REQUEST_BYTES

_FAILURES = (inflating.MalformedError, inflating.TooLargeError, ServingError)


def inflate(
    request: Request,
    max_body_bytes: int,
    hold: Callable[[int], None],
    cost: Callable[[int], int],
    hand_over: Callable[[Request | Response], None],
) -> Cancellable | None:
    """Pass on the request with its plain body, or a refusal in its place, now or later.

    Returns a handle to cancel where it is later.

    Args:
        hold: counts so many more bytes for the request; raises ServingError where there is no room for them.
        cost: returns the bytes counted for a large JSON body of that size.
    """
    body = memoryview(request.body)[request.body_offset :]
    bits = request.window_bits or 0

    def plain(found: bytes | memoryview) -> Request:
        if len(found) > LARGE_REQUEST_BYTES and request.json_length is None:
            hold(cost(len(found)) - len(found))
        return request._replace(body=found, body_offset=0, window_bits=None)

    async def later() -> None:
        answer: Request | Response
        try:
            answer = plain(await inflating.inflate_in_thread(body, bits, max_body_bytes, hold))
        except _FAILURES as error:
            answer = _refusal(error, max_body_bytes)
        hand_over(answer)

    if len(body) > inflating.SMALL_BYTES:
        return _Later(asyncio.get_running_loop().create_task(later()))
    answer: Request | Response
    try:
        found = inflating.inflate(body, bits, max_body_bytes)
        hold(len(found))
        answer = plain(found)
    except _FAILURES as error:
        answer = _refusal(error, max_body_bytes)
    hand_over(answer)
    return None


class _Later:
    """A body during decompression."""

    def __init__(self, task: "asyncio.Task[None]") -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()


def _refusal(error: Exception, max_body_bytes: int) -> Response:
    if isinstance(error, ServingError):
        return error_response(error)
    if isinstance(error, inflating.TooLargeError):
        return text_error(413, f"the request body is larger than {max_body_bytes} bytes")
    return text_error(400, f"the compressed request body {error}")
