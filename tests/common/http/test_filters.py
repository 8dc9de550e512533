from datetime import UTC, datetime

import pytest
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from common.errors import InvalidInput
from common.http.filters import Filter, Kind, ListFilters
from registry.models import RegisteredModel

pytestmark = pytest.mark.django_db


class View:
    filters = (
        Filter("name", "name", "The name."),
        Filter("any", "name|created_by", "Either."),
        Filter("number", "latest_number", "A number.", Kind.INTEGER),
        Filter("since", "created_at__gte", "From then on.", Kind.MOMENT),
        Filter("kind", "name", "One of two.", choices=("a", "b")),
    )


def names(query: str) -> list[str]:
    for day, name in enumerate("abc", start=1):
        RegisteredModel.objects.create(
            name=name,
            latest_number=day,
            created_at=datetime(2026, 1, day, tzinfo=UTC),
            created_by="a" if day == 3 else "x",
        )
    request = Request(APIRequestFactory().get(f"/?{query}"))
    rows = ListFilters().filter_queryset(request, RegisteredModel.objects.order_by("name"), View())
    return [row.name for row in rows]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["a", "b", "c"], id="without parameters there is everything"),
        pytest.param("name=b", ["b"], id="a text is compared whole"),
        pytest.param("any=a", ["a", "c"], id="one of several columns may fit"),
        pytest.param("number=3", ["c"], id="a number"),
        pytest.param("since=2026-01-02T00:00:00Z", ["b", "c"], id="a moment in UTC"),
        pytest.param("since=2026-01-02T02:00:00+02:00", ["b", "c"], id="a plus sign that was not escaped"),
        pytest.param("since=2026-01-02T00:00:00", ["b", "c"], id="a moment without a zone is in UTC"),
        pytest.param("kind=b&number=2", ["b"], id="several narrow together"),
        pytest.param("limit=1&cursor=x&ordering=y", ["a", "b", "c"], id="paging is not this one's business"),
    ],
)
def test_a_list_is_narrowed(query: str, expected: list[str]) -> None:
    assert names(query) == expected


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("colour=red", "colour", id="a parameter that the list does not have"),
        pytest.param("name=a&name=b", "name", id="a parameter given twice"),
        pytest.param("name=", "name", id="an empty text"),
        pytest.param("name=" + "x" * 301, "name", id="a text that is too long"),
        pytest.param("number=-1", "number", id="a negative number"),
        pytest.param("number=99999999999", "number", id="a number beyond the column"),
        pytest.param("since=yesterday", "since", id="a moment in words"),
        pytest.param("since=2026-13-45T00:00:00Z", "since", id="a day that is none"),
        pytest.param("since=0001-01-01T00:00:00%2B14:00", "since", id="a moment before all calendars"),
        pytest.param("kind=c", "kind", id="a value that is not among the choices"),
    ],
)
def test_what_the_list_does_not_know_is_refused_by_its_name(query: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        names(query)
    assert refusal.value.field == field
