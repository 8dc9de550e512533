import pytest

from events.domain import sse


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(sse.event("hello"), b"data: hello\n\n", id="data only"),
        pytest.param(
            sse.event("<p>", name="rollout", event_id=7), b"id: 7\nevent: rollout\ndata: <p>\n\n", id="name and id"
        ),
        pytest.param(sse.event("a\nb\r\nc\rd"), b"data: a\ndata: b\ndata: c\ndata: d\n\n", id="each line end is one"),
        pytest.param(sse.event(""), b"data: \n\n", id="empty data is still an event"),
        pytest.param(sse.event("é"), "data: é\n\n".encode(), id="UTF-8"),
        pytest.param(sse.retry(2000), b"retry: 2000\n\n", id="when to come back"),
    ],
)
def test_bytes(made: bytes, expected: bytes) -> None:
    assert made == expected


def test_a_name_cannot_bring_fields_of_its_own() -> None:
    with pytest.raises(ValueError, match="one line"):
        sse.event("x", name="a\ndata: b")
