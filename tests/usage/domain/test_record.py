"""Records of Envoy Gateway's Envoys: which service their routes are of, and what does not count."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests._support.usage_page import access_log_settings
from usage.domain.line import Group, Sums
from usage.domain.record import by_service, merge, read_records

NOW = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
SERVICES = frozenset({("default", "digits"), ("default", "digits-match"), ("other", "cards")})
RECORD = {
    "time": "2026-01-31T12:10:00.123Z",
    "namespace": "default",
    "route": "digits",
    "backend": "digits-00001",
    "key": "ci",
    "token_id": "t1",
    "team": "fraud",
    "path": "/v2/models/digits/infer",
    "status": "200",
    "grpc_status": "-",
    "bytes_in": "10",
    "bytes_out": "20",
    "model_us": "1500",
    "attempts": "1",
    "rows": "4",
    "grpc_rows": "-",
    "k8s.pod.name": "envoy",
}


def counted(**changed: str) -> tuple[Group, Sums]:
    read = read_records([RECORD | changed], NOW)
    assert (read.lines, read.bad) == (1, 0), read.why
    found, others = by_service(read.sums, SERVICES)
    assert others == 0
    ((group, sums),) = found.items()
    return group, sums


def test_the_documentation_has_the_fields_that_are_read() -> None:
    (fields,) = (each["format"]["json"] for each in access_log_settings() if "format" in each)
    assert fields.keys() == RECORD.keys() - {"k8s.pod.name"}


def test_a_record_is_summed_as_a_line_is() -> None:
    group, sums = counted()
    assert group == Group(
        NOW.replace(minute=0), "default", "digits", "digits-00001", "fraud", "ci", token_id="t1", user=""
    )
    at = datetime(2026, 1, 31, 12, 10, 0, 123_000, tzinfo=UTC)
    assert sums == Sums(1, 0, 4, 10, 20, 1500, at)
    group, _ = counted(key="-", token_id="-", team="-")
    assert (group.key, group.token_id, group.team) == ("", "", "")


@pytest.mark.parametrize(
    ("route", "service"),
    [
        ("digits", "digits"), ("digits-host", "digits"), ("digits-version-12", "digits"),
        ("digits-version-2-host", "digits"), ("digits-match-3", "digits"), ("digits-match-2-host", "digits"),
        ("digits-preview", "digits-preview"), ("digits-preview-host", "digits-preview"),
        ("digits-match", "digits-match"), ("digits-match-host", "digits-match"),
    ],
)  # fmt: skip
def test_each_route_is_of_its_service_or_its_preview(route: str, service: str) -> None:
    group, _ = counted(route=route)
    assert group.service == service


@pytest.mark.parametrize(
    "other", [{"route": "cards"}, {"namespace": "other"}, {"route": "shop"}, {"route": "digits-2"}, {"route": "-host"}]
)
def test_routes_of_the_operators_own_do_not_count(other: dict[str, str]) -> None:
    found, others = by_service(read_records([RECORD | other], NOW).sums, SERVICES)
    assert (found, others) == ({}, 1)


@pytest.mark.parametrize("other", [{"namespace": "-"}, {"route": "-"}, {"path": "/v2/health/ready"}, {"path": "-"}])
def test_other_requests_do_not_count(other: dict[str, str]) -> None:
    read = read_records([RECORD | other, {"time": RECORD["time"]}], NOW)
    assert (read.sums, read.lines) == ({}, 2)


def test_revisions_are_those_of_backends_that_took_a_request() -> None:
    for kind in ("transformer", "explainer"):
        assert counted(backend=f"digits-00002-{kind}")[0].revision == "digits-00002"
    for refused in ({"attempts": "0"}, {"attempts": "-"}, {"backend": "-"}, {"backend": "fairlead-digits"}):
        assert counted(**refused)[0].revision == "", refused


def test_errors_have_no_rows() -> None:
    for failed in ({"status": "503"}, {"status": "0"}, {"grpc_status": "8"}):
        sums = counted(**failed)[1]
        assert (sums.errors, sums.rows) == (1, 0), failed
    assert counted(rows="-", grpc_rows="3", grpc_status="0")[1].rows == 3
    assert counted(rows="1000000000000000000")[1].rows == 10, "a row takes a byte"
    assert counted(rows="\N{REPLACEMENT CHARACTER}")[1].rows == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"time": "-"}, {"time": "x"}, {"time": "2026-02-02T12:00:00Z"}, {"time": "2026-01-30T12:00:00Z"},
        {"status": "many"}, {"bytes_in": "-1"}, {"bytes_out": "9" * 16}, {"bytes_out": "9" * 99}, {"model_us": "1e3"},
        {"team": "x" * 151}, {"key": "a\nb"}, {"backend": "a\0"}, {"route": "x" * 151},
        {"time": "0001-01-01T00:00:00+10:00"},
    ],
)  # fmt: skip
def test_a_bad_record_is_counted_and_changes_nothing(bad: dict[str, str]) -> None:
    read = read_records([RECORD, RECORD | bad], NOW)
    assert (read.lines, read.bad, bool(read.why)) == (1, 1, True)
    assert [each.requests for each in read.sums.values()] == [1]
    assert read_records([RECORD | bad], NOW).sums == {}


def test_groups_are_bounded_and_known_ones_go_on() -> None:
    group = Group(NOW, "default", "digits", "", "", "", "", "")
    into: dict[Group, Sums] = {}
    assert merge(into, {replace(group, key=str(number)): Sums(3) for number in range(4)}, most=2) == 6
    assert merge(into, {replace(group, key="1"): Sums(5, last_at=NOW)}, most=2) == 0
    assert [(each.key, sums.requests) for each, sums in into.items()] == [("0", 3), ("1", 8)]
    assert into[replace(group, key="1")].last_at == NOW - timedelta(0)
