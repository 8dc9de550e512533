"""What of a request's headers or metadata follows it through the runtime."""

from serving_runtime.common.request import RequestContext
from serving_runtime.protocol import context


def test_headers_are_found_however_they_are_written() -> None:
    headers = [(b"X-Request-ID", b"a7"), (b"TraceParent", b"00-1-2-01"), (b"Else", b"?")]
    assert context.from_headers(headers) == RequestContext("a7", "00-1-2-01", "")


def test_a_value_too_long_to_be_an_id_is_taken_as_not_sent() -> None:
    assert context.from_metadata({"x-request-id": "x" * 513, "tracestate": "a=b"}) == RequestContext("", "", "a=b")


def test_the_requests_of_a_stream_are_told_apart() -> None:
    assert context.numbered(RequestContext("a7", "t"), 2) == RequestContext("a7.2", "t")
    assert context.numbered(RequestContext(), 2) == RequestContext()
