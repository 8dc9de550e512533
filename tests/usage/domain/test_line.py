"""Lines that are not the gateway's are counted, and change no sum."""

import json

import pytest

from integrations.clusters.base.logged_requests import MOST_ROWS
from usage.domain.line import read_lines

LINE = {
    "time": "2026-01-31T12:10:00.123Z",
    "service": "default/digits",
    "upstream": "default/digits-00001/http",
    "key": "ci",
    "team": "fraud",
    "path": "/v2/models/digits/infer",
    "status": 200,
    "bytes_in": 10,
}


def line(**changed: object) -> bytes:
    return json.dumps(LINE | changed).encode()


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"nothing", b"[]", b'{"time": 1}', b'{"time": "yesterday"}', b"[" * 100_000, b"\xff", b"{\xff}",
        line(team="x" * 151), line(key="a\nb"), line(key=["a"]), line(bytes_in=-1), line(bytes_in=1e300),
        line(bytes_in=True), line()[:-5], line(team="\ud800"), line(time="0001-01-01T00:00:00+10:00"), line(status="x"),
        line(model_us=1 << 53), line(service="default/a\0b"),
    ],
)  # fmt: skip
def test_a_bad_line_is_counted_and_changes_nothing(bad: bytes) -> None:
    read = read_lines([line(), bad, line()])
    assert (read.lines, read.bad, bool(read.why)) == (2, 1, True)
    assert [(each.requests, each.bytes_in) for each in read.sums.values()] == [(2, 20)]


@pytest.mark.parametrize(
    "path",
    [
        "/v2/models/a/infer",
        "/v1/models/a:predict",
        "/inference.GRPCInferenceService/ModelInfer",
        "/v2/models/a/generate",
    ],
)
def test_inferences_count(path: str) -> None:
    assert len(read_lines([line(path=path)]).sums) == 1


@pytest.mark.parametrize(
    "path", ["/v2/health/ready", "/v2/models/a", "/inference.GRPCInferenceService/ModelReady", None]
)
def test_other_calls_do_not_count(path: str | None) -> None:
    assert read_lines([line(path=path)]).sums == {}


@pytest.mark.parametrize(
    ("said", "rows"),
    [
        ({"rows": "7"}, 7),
        ({"grpc_rows": "7", "grpc_status": 0}, 7),
        ({}, 1),
        ({"rows": "0"}, 1),
        ({"rows": "11"}, 10),  # more than the request has bytes
        ({"rows": "9" * 20, "bytes_in": 1 << 40}, MOST_ROWS),
        ({"rows": "7", "status": 500}, 0),
        ({"rows": "7", "status": 0}, 0),
        ({"grpc_rows": "7", "grpc_status": 5}, 0),
    ],
)
def test_rows_are_those_that_the_request_could_hold(said: dict[str, object], rows: int) -> None:
    (sums,) = read_lines([line(**said)]).sums.values()
    assert (sums.requests, sums.rows) == (1, rows)


@pytest.mark.parametrize(
    "said", ["-5", "5.0", "1e3", "\u0665", "x" * 400, "5, 5", "5\n", "\x00", "\ud800", 5, ["5"], {}, True]
)
def test_a_replica_that_says_nonsense_has_one_row_and_its_request_counts(said: object) -> None:
    read = read_lines([line(rows=said)])
    assert (read.bad, [each.rows for each in read.sums.values()]) == (0, [1])


def test_a_request_that_was_sent_to_no_replica_is_of_no_revision() -> None:
    of_a_former_release = [line(model_us=5), line(status=403)]
    found = read_lines([line(attempts=0, status=403), line(attempts=1), *of_a_former_release]).sums
    assert sorted((group.revision, sums.requests) for group, sums in found.items()) == [("", 2), ("digits-00001", 2)]
