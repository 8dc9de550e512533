"""A line of the log per request."""

import logging

import pytest

from serving_runtime.protocol.http.wire.access_log import LoggedApplication
from serving_runtime.protocol.http.wire.message import Reply, Request, Response
from serving_runtime.telemetry import request_log


class Later:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.cancelled = False

    def handle(self, _request: Request, reply: Reply) -> "Later":
        self.reply = reply
        return self

    def cancel(self) -> None:
        self.cancelled = True


@pytest.mark.parametrize(("answered", "status"), [(True, "status=200"), (False, "status=GONE")])
def test_a_client_that_goes_is_one_line_whether_its_answer_has_begun_or_not(
    caplog: pytest.LogCaptureFixture, *, answered: bool, status: str
) -> None:
    caplog.set_level(logging.DEBUG, request_log.logger.name)
    later = Later()
    job = LoggedApplication(later).handle(
        Request(b"POST", b"/v2/models/m/generate_stream", b"", 0, None), lambda _response: None
    )
    if answered:
        later.reply(Response(200, b"", (), 0))
    assert job is not None
    job.cancel()
    assert later.cancelled
    (line,) = caplog.messages
    assert status in line
