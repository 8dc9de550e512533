"""How long a provider's word on an account lets its tokens work."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.domain.proof import has_lapsed

NOW = datetime(2026, 11, 26, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "can_be_asked", "longest_outage", "lapsed"),
    [
        pytest.param(None, False, None, False, id="never noted"),
        pytest.param(23, False, None, False, id="within the day"),
        pytest.param(24, False, None, True, id="a day after the last sign-in"),
        pytest.param(24 * 30, True, None, False, id="an outage locks nobody out"),
        pytest.param(24 * 30, True, 0, True, id="unless that is set"),
        pytest.param(29, True, 6, False, id="within the outage that is set"),
        pytest.param(30, True, 6, True, id="after it"),
    ],
)
def test_a_confirmation_lasts_a_day(
    hours: int | None, can_be_asked: bool, longest_outage: int | None, lapsed: bool
) -> None:
    found = has_lapsed(
        checked_at=None if hours is None else NOW - timedelta(hours=hours),
        can_be_asked=can_be_asked,
        longest_outage=None if longest_outage is None else timedelta(hours=longest_outage),
        now=NOW,
    )
    assert found is lapsed
