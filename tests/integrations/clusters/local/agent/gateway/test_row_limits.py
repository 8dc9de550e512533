"""Who has used up a limit of rows in a window, against sums made otherwise."""

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from integrations.clusters.base import CallerKeys, Limits, RowRate
from integrations.clusters.base.logged_requests import LoggedRequest
from integrations.clusters.local.agent.gateway.row_limits import MAX_CALLERS, RowLimits, RowWindow
from integrations.clusters.local.envoy.values import Backend, RowsExceeded, ServiceRoute

SERVICES, KEYS, TEAMS = ["default/a", "default/b", "other/a"], ["", "ci", "nightly"], ["", "fraud", "vision"]


def request(service: str = "default/a", key: str = "", team: str = "", rows: int = 1) -> LoggedRequest:
    at = datetime(2026, 1, 31, tzinfo=UTC)
    return LoggedRequest(at, service, "a-00001", key, team, "", "", failed=not rows, rows=rows, bytes_in=1, bytes_out=1,
                         model_us=1)  # fmt: skip


def counted(requests: Sequence[LoggedRequest], limits: RowLimits) -> RowsExceeded:
    window = RowWindow(7)
    for each in requests:
        window.add(each, limits)
    return window.exceeded(limits)


def some_limits(names: list[str]) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from([name for name in names if name]), st.integers(1, 40), max_size=2)


REQUESTS = st.lists(
    st.builds(
        request,
        st.sampled_from(SERVICES),
        st.sampled_from(KEYS),
        st.sampled_from(TEAMS),
        st.sampled_from([0, 1, 7, 30]),
    ),
    max_size=12,
)
LIMITS = st.builds(RowLimits, some_limits(SERVICES), some_limits(SERVICES), some_limits(KEYS), some_limits(TEAMS))


@given(REQUESTS, LIMITS)
def test_those_are_refused_whose_rows_reach_their_limit(requests: list[LoggedRequest], limits: RowLimits) -> None:
    found = counted(requests, limits)
    assert set(found.services) == {
        name
        for name, most in limits.services.items()
        if sum(each.rows for each in requests if each.service == name) >= most
    }
    assert set(found.callers) == {
        (name, key)
        for name, most in limits.callers.items()
        for key in KEYS
        if sum(each.rows for each in requests if (each.service, each.key) == (name, key)) >= most
    }
    assert set(found.keys) == {
        name for name, most in limits.keys.items() if sum(each.rows for each in requests if each.key == name) >= most
    }
    assert set(found.teams) == {
        name for name, most in limits.teams.items() if sum(each.rows for each in requests if each.team == name) >= most
    }


@given(REQUESTS, LIMITS, st.randoms(use_true_random=False))
def test_the_order_of_requests_changes_nothing(requests: list[LoggedRequest], limits: RowLimits, order: object) -> None:
    shuffled = list(requests)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert counted(shuffled, limits) == counted(requests, limits)


@given(REQUESTS, LIMITS, LIMITS)
def test_a_limit_that_is_raised_or_ended_refuses_no_more(
    requests: list[LoggedRequest], limits: RowLimits, later: RowLimits
) -> None:
    window = RowWindow(7)
    for each in requests:
        window.add(each, limits)
    found = window.exceeded(later)
    assert set(found.services) <= later.services.keys()
    assert {service for service, _ in found.callers} <= later.callers.keys()
    assert window.exceeded(RowLimits()) == RowsExceeded()


def test_callers_beyond_the_bound_count_for_their_service_only() -> None:
    limits = RowLimits(services={"default/a": MAX_CALLERS + 100}, callers={"default/a": 1})
    requests = [request(key=f"key-{number}") for number in range(MAX_CALLERS + 100)]
    found = counted(requests, limits)
    assert len(found.callers) == MAX_CALLERS
    assert ("default/a", "key-0") in found.callers
    assert found.services == ("default/a",)


def test_limits_are_those_of_services_previews_keys_and_teams() -> None:
    backends = (Backend("a-00001", "1", 100),)
    limited = ServiceRoute("default", "a", backends, preview="a-00001", limits=Limits(9, rows_per_minute=5))
    of_callers = ServiceRoute("default", "b", backends, limits=Limits(caller_rows_per_minute=3))
    taken = ServiceRoute("default", "c", backends, preview="a-00001", limits=Limits(rows_per_minute=8))
    named_like_a_preview = ServiceRoute("default", "c-preview", backends, limits=Limits(2))
    keys = CallerKeys(row_rates=(RowRate(7, key="ci"), RowRate(6, team="fraud")))
    assert RowLimits.of([limited, of_callers, taken, named_like_a_preview], keys) == RowLimits(
        services={"default/a": 5, "default/a-preview": 5, "default/c": 8},
        callers={"default/b": 3},
        keys={"ci": 7},
        teams={"fraud": 6},
    )
    assert not RowLimits.of([named_like_a_preview], CallerKeys())
    assert RowLimits.of([], keys)
