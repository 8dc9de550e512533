"""What a Range header asks for, and what it is answered."""

import pytest

from common.http.downloads import Asked, Download, Span, download, span_of


@pytest.mark.parametrize(
    ("header", "span"),
    [
        pytest.param("", None, id="everything"),
        pytest.param("bytes=0-", Span(0, 99), id="from the beginning"),
        pytest.param("bytes=40-", Span(40, 99), id="from the middle to the end"),
        pytest.param("bytes=40-49", Span(40, 49), id="a stretch"),
        pytest.param("bytes=40-1000", Span(40, 99), id="a stretch over the end"),
        pytest.param("bytes=100-", Span(100, 99), id="from behind the end"),
        pytest.param("bytes=49-40", None, id="backwards"),
        pytest.param("bytes=-10", None, id="the last ones, which is not honoured"),
        pytest.param("bytes=0-1,5-6", None, id="several, which is not honoured"),
        pytest.param("lines=1-2", None, id="another unit"),
        pytest.param("bytes=\u0661-", None, id="another script's digits"),
    ],
)
def test_a_range_is_a_stretch_of_bytes(header: str, span: Span | None) -> None:
    assert span_of(header, 100) == span


def _answer(header: str, if_range: str = "") -> tuple[int, str, bytes]:
    def pieces(first: int):
        yield from (b"0123456789"[at : at + 3] for at in range(first, 10, 3))

    answer = download(pieces, Asked(header, if_range), filename="x", size_bytes=10, digest="d")
    body = b"".join(answer) if isinstance(answer, Download) else answer.content
    return answer.status_code, answer.headers.get("Content-Range", ""), body


@pytest.mark.parametrize(
    ("header", "if_range", "expected"),
    [
        pytest.param("", "", (200, "", b"0123456789"), id="all"),
        pytest.param("bytes=4-", "", (206, "bytes 4-9/10", b"456789"), id="the rest"),
        pytest.param("bytes=4-5", "", (206, "bytes 4-5/10", b"45"), id="less than a piece"),
        pytest.param("bytes=10-", "", (416, "bytes */10", b""), id="nothing is left"),
        pytest.param("bytes=4-", '"d"', (206, "bytes 4-9/10", b"456789"), id="the rest of what it was"),
        pytest.param("bytes=4-", '"other"', (200, "", b"0123456789"), id="it is another file now"),
    ],
)
def test_what_is_answered(header: str, if_range: str, expected: tuple[int, str, bytes]) -> None:
    assert _answer(header, if_range) == expected
