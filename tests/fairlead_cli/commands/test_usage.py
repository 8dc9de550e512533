"""`fairlead usage`, budgets of teams, keys and services, and limits of keys and teams."""

from collections.abc import Callable
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]
BUDGET = {
    "month": "2026-01",
    "requests": 9,
    "rows": 5,
    "cost": 2.5,
    "enforce": True,
    "currency": "EUR",
    "used_requests": 1,
    "used_rows": 1,
    "used_cost": 0.5,
    "used_up": False,
}


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("teams budget red", "/teams/red/budget"),
        ("keys budget ci", "/keys/ci/budget"),
        ("services budget fraud/cards", "/services/fraud/cards/budget"),
    ],
)
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("--rows 70", {"requests": 9, "rows": 70, "cost": 2.5}),
        ("--cost none --no-enforce", {"requests": 9, "rows": 5, "cost": None, "enforce": False}),
    ],
)
def test_a_budget_is_changed_in_what_is_named(
    fairlead: Fairlead, api: Any, words: str, address: str, line: str, wanted: dict[str, object]
) -> None:
    api.on(f"GET {address}", BUDGET)
    api.on(f"PUT {address}", BUDGET)
    code, _, complained = fairlead(*words.split(), *line.split())
    assert code == 0, complained
    (sent,) = [seen.document for seen in api.seen if seen.method == "PUT"]
    assert sent == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("50", {"requests_per_second": 50}),
        ("none", {"requests_per_second": None}),
        ("--rows-per-minute 9000", {"rows_per_minute": 9000}),
        ("20 --rows-per-minute none", {"requests_per_second": 20, "rows_per_minute": None}),
    ],
)
def test_a_key_is_limited_in_what_is_named(fairlead: Fairlead, api: Any, line: str, wanted: dict[str, object]) -> None:
    api.on("PATCH /keys/ci", {"name": "ci", "team": "red", "services": ["*"]})
    code, _, complained = fairlead("keys", "limit", "ci", *line.split())
    assert code == 0, complained
    assert [seen.document for seen in api.seen] == [wanted]


def test_a_limit_of_nothing_is_refused_in_a_sentence(fairlead: Fairlead, api: Any) -> None:
    code, _, complained = fairlead("keys", "limit", "ci")
    assert code == 1
    assert "expected a NUMBER of requests a second, or --rows-per-minute" in complained
    assert api.seen == []


@pytest.mark.parametrize("before", [{"rows_per_minute": 7}, {}], ids=["", "release-before"])
def test_the_quota_of_a_team_keeps_what_is_not_named(fairlead: Fairlead, api: Any, before: dict[str, int]) -> None:
    quota = {"max_versions": 3, "max_bytes": None, "requests_per_second": 9, "used_versions": 1, "used_bytes": 7}
    api.on("GET /teams/red/quota", quota | before)
    api.on("PUT /teams/red/quota", quota | before)
    assert fairlead("teams", "quota", "red", "--max-versions", "none")[0] == 0
    (sent,) = [seen.document for seen in api.seen if seen.method == "PUT"]
    assert sent == {"max_versions": None, "max_bytes": None, "requests_per_second": 9} | before
