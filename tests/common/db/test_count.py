"""Counts that pages show."""

import pytest
from django.db.models import OuterRef
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import Membership, Team, User
from common.db.count import CountUpTo, count_up_to, counted


@pytest.mark.django_db
@pytest.mark.parametrize(("rows", "count"), [(0, 0), (3, 3), (4, 4), (6, 4)])
def test_rows_are_counted_up_to_one_more_than_the_most(rows: int, count: int) -> None:
    User.objects.bulk_create(User(username=f"user-{number}") for number in range(rows))
    assert count_up_to(User.objects.order_by("username"), most=3) == count


@pytest.mark.django_db
def test_rows_of_a_row_are_counted_up_to_one_more_than_the_most(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    teams = [Team.objects.create(name=f"team-{number}", created_at=timezone.now()) for number in (0, 3, 6)]
    users = User.objects.bulk_create(User(username=f"user-{number}") for number in range(6))
    for team, count in zip(teams, (0, 3, 6), strict=True):
        Membership.objects.bulk_create(Membership(team=team, user=user, role="viewer") for user in users[:count])
    counts = CountUpTo(Membership.objects.filter(team=OuterRef("pk")), most=3)
    with django_assert_num_queries(1):
        found = list(Team.objects.filter(name__startswith="team-").order_by("name").annotate(members=counts))
    assert [team.members for team in found] == [0, 3, 4]


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (1000, "1,000"), (1001, "1,000+"), (3003, "1,000+")])
def test_more_than_is_counted_reads_as_that(number: int, text: str) -> None:
    assert counted(number) == text
