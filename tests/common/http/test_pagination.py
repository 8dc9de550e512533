import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from common.errors import InvalidInput
from common.http.pagination import CursorPagination
from registry.models import RegisteredModel

NOW = datetime(2026, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


class ByName:
    ordering = "name"


def make(*names: str) -> None:
    RegisteredModel.objects.bulk_create(RegisteredModel(name=name, created_at=NOW, created_by="test") for name in names)


def page(address: str, view: object = None) -> tuple[list[str], str | None]:
    """Return the names on the page at `address` and the address of the next."""
    paginator = CursorPagination()
    rows = paginator.paginate_queryset(
        RegisteredModel.objects.all(), Request(APIRequestFactory().get(address)), view=view
    )
    return [row.name for row in rows], paginator.get_paginated_response([]).data["next"]


def walk(view: object = None) -> list[str]:
    names: list[str] = []
    address: str | None = "/?limit=2&kept=1"
    while address:
        assert "kept=1" in address
        found, address = page(address, view)
        names += found
    return names


def test_newest_first_over_several_pages() -> None:
    make("a", "c", "b", "e", "d")
    assert walk() == ["d", "e", "b", "c", "a"]


def test_a_view_chooses_the_column() -> None:
    make("a", "c", "b", "e", "d & ü?")
    assert walk(ByName()) == ["a", "b", "c", "d & ü?", "e"]


def test_a_last_page_that_is_just_full_has_no_next() -> None:
    make("a", "b")
    assert page("/?limit=2") == (["b", "a"], None)


def test_rows_that_come_and_go_between_pages_neither_repeat_nor_hide_others() -> None:
    make("a", "c", "e", "g")
    first, following = page("/?limit=2", ByName())
    RegisteredModel.objects.filter(name="c").delete()
    make("b", "d")
    assert following is not None
    second, _ = page(following, ByName())
    assert (first, second) == (["a", "c"], ["d", "e"])


def test_more_than_the_limit_gives_the_limit() -> None:
    make(*(f"m{number:03}" for number in range(CursorPagination.max_limit + 1)))
    found, following = page("/?limit=1000")
    assert len(found) == CursorPagination.max_limit
    assert following is not None


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5", "", "9" * 30, "٣"])
def test_a_limit_that_is_no_number_is_refused(limit: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        page(f"/?limit={limit}")
    assert refusal.value.field == "limit"


@pytest.mark.parametrize("cursor", ["x", "!!!", "eA==", "é", "", "/w==", "W10=", "WzFd", "WyJcdTAwMDAiXQ=="])
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    make("a")
    with pytest.raises(InvalidInput) as refusal:
        page(f"/?cursor={cursor}")
    assert refusal.value.field == "cursor"


def test_a_cursor_beyond_what_the_database_counts_is_an_empty_page() -> None:
    make("a")
    beyond = base64.urlsafe_b64encode(json.dumps(["9" * 24]).encode()).decode()
    assert page(f"/?cursor={beyond}")[1] is None


class ByMoment:
    ordering = "name"
    orderings = ("-created_at", "created_at")


@pytest.mark.parametrize(
    ("ordering", "expected"), [("created_at", ["b", "a", "c", "d"]), ("-created_at", ["d", "c", "a", "b"])]
)
def test_rows_that_are_equal_in_the_asked_column_go_by_their_id(ordering: str, expected: list[str]) -> None:
    make("b")
    make("a")
    RegisteredModel.objects.create(name="c", created_at=NOW + timedelta(days=1), created_by="test")
    RegisteredModel.objects.create(name="d", created_at=NOW + timedelta(days=1), created_by="test")
    names: list[str] = []
    address: str | None = f"/?limit=1&ordering={ordering}"
    while address:
        found, address = page(address, ByMoment())
        names += found
    assert names == expected


def test_an_order_that_the_list_does_not_know_is_refused_with_those_it_knows() -> None:
    with pytest.raises(InvalidInput, match="this list knows name, -created_at, created_at"):
        page("/?ordering=description", ByMoment())
