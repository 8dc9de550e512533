"""Counts that pages show."""

import pytest

from accounts.models import User
from common.counting import count_up_to, counted


@pytest.mark.django_db
@pytest.mark.parametrize(("rows", "count"), [(0, 0), (3, 3), (4, 4), (6, 4)])
def test_rows_are_counted_up_to_one_more_than_the_most(rows: int, count: int) -> None:
    User.objects.bulk_create(User(username=f"user-{number}") for number in range(rows))
    assert count_up_to(User.objects.order_by("username"), most=3) == count


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (1000, "1,000"), (1001, "1,000+"), (3003, "1,000+")])
def test_more_than_is_counted_reads_as_that(number: int, text: str) -> None:
    assert counted(number) == text
