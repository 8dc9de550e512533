"""What the address of a list of services asks for."""

import pytest

from common.errors import InvalidInput
from deployments.domain.phases import ServicePhase
from deployments.web.services.filter import ServiceFilter, parse_filter


@pytest.mark.parametrize(
    ("fields", "shown", "query"),
    [
        pytest.param({}, ServiceFilter(), "", id="everything"),
        pytest.param({"q": "  ", "page": "1"}, ServiceFilter(), "", id="nothing said"),
        pytest.param({"q": "team a"}, ServiceFilter(("team", "a")), "q=team+a", id="words"),
        pytest.param(
            {"q": "x&y", "phase": "Degraded", "page": "3"},
            ServiceFilter(("x&y",), ServicePhase.DEGRADED, 3),
            "q=x%26y&phase=Degraded&page=3",
            id="all at once",
        ),
    ],
)
def test_an_address_and_its_query_say_the_same(fields: dict[str, str], shown: ServiceFilter, query: str) -> None:
    assert parse_filter(fields) == shown
    assert shown.query == query


@pytest.mark.parametrize(
    "fields",
    [{"phase": "Great"}, {"page": "0"}, {"page": "-1"}, {"page": "two"}, {"page": "9" * 30}, {"q": "x" * 201}],
    ids=str,
)
def test_what_it_cannot_mean_is_refused_by_name(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(fields))):
        parse_filter(fields)


def test_another_phase_begins_at_its_first_page() -> None:
    assert ServiceFilter(("a",), None, 7).of(ServicePhase.READY) == ServiceFilter(("a",), ServicePhase.READY, 1)
