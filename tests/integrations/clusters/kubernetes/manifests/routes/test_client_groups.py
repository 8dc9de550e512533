"""A group of clients as routes of its own."""

from dataclasses import replace

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import HeaderMatch, MatchKind
from integrations.clusters.kubernetes.manifests import render
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.manifests.routes.client_groups import alternatives, from_json, to_json
from tests.integrations._support.manifests import given

COUNTRIES = HeaderMatch("x-country", MatchKind.ANY_OF, tuple(f"c{number}" for number in range(20)))


def test_all_headers_have_to_hold_and_one_of_several_values() -> None:
    group = (
        HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "staff")),
        HeaderMatch("x-os", MatchKind.EXACT, ("a.b",)),
    )
    found = [[(each["name"], each["type"], each["value"]) for each in headers] for headers in alternatives(group)]
    assert found == [
        [("x-group", "Exact", "beta"), ("x-os", "Exact", "a.b")],
        [("x-group", "Exact", "staff"), ("x-os", "Exact", "a.b")],
    ]


def test_the_beginning_of_a_header_is_an_expression_in_which_nothing_else_has_a_meaning() -> None:
    [[header]] = alternatives((HeaderMatch("x-client", MatchKind.PREFIX, ("app/2.(x)",)),))
    assert (header["type"], header["value"]) == ("RegularExpression", r"^app/2\.\(x\).*$")


def test_no_route_has_more_matches_than_the_gateway_api_allows() -> None:
    desired, shares, options = given("group")
    canary = replace(desired.revisions[1], match=(COUNTRIES,))
    made = render(replace(desired, revisions=(desired.revisions[0], canary)), shares, options)
    counts = [
        [len(rule["matches"]) for rule in each["spec"]["rules"]] for each in made if each["kind"].endswith("Route")
    ]
    assert max(max(rules) for rules in counts) <= 64
    assert max(sum(rules) for rules in counts) <= 128
    assert max(len(rules) for rules in counts) <= 16
    named = {
        header["value"]
        for each in made
        if each["kind"] == "HTTPRoute"
        for rule in each["spec"]["rules"]
        for match in rule["matches"]
        for header in match.get("headers", ())
    }
    assert named == set(COUNTRIES.values)


def test_more_combinations_than_routes_are_made_for_are_refused() -> None:
    with pytest.raises(InvalidInput, match="match has 400 combinations of values"):
        alternatives((COUNTRIES, replace(COUNTRIES, header="x-language")))


def test_groups_are_read_as_they_were_written() -> None:
    groups = {"digits-00002": (COUNTRIES, HeaderMatch("x-os", MatchKind.PREFIX, ("a",)))}
    assert from_json(to_json(groups)) == groups
    assert from_json("") == {}


def test_a_groups_route_is_there_before_and_after_its_group_and_is_nobodys() -> None:
    """An Envoy Gateway gives Envoy a route and its cluster together, and the cluster is warm some time after."""
    desired, shares, options = given("group")
    stable, canary = desired.revisions
    before = _route(
        "digits-match", render(replace(desired, revisions=(stable, replace(canary, match=()))), shares, options)
    )
    while_ = _route("digits-match", render(desired, shares, options))
    main = _route("digits", render(desired, shares, options))
    assert len(before["rules"]) == len(while_["rules"]), "a rule's place is its cluster's name"
    for rule in before["rules"]:
        assert {match["headers"][0]["name"] for match in rule["matches"]} == {"fairlead-group"}
        assert rule["backendRefs"] == main["rules"][0]["backendRefs"], "requests with that header are like all others"
    alone = render(replace(desired, revisions=(stable,)), shares, options)
    assert "digits-match" not in {each["metadata"]["name"] for each in alone}


def _route(name: str, made: list[Manifest]) -> Manifest:
    return next(each["spec"] for each in made if (each["kind"], each["metadata"]["name"]) == ("HTTPRoute", name))
