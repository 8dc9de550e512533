"""An explainer is reached by explain requests alone, through the checks of callers and limits that others pass too."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from integrations.clusters.base import Access, CompanionKind, Cors, Desired, HeaderMatch, Limits, MatchKind
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.names import SERVICE, companion_of
from integrations.clusters.kubernetes.manifests.routes.security_policy import WITHHOLD_TOKEN
from integrations.clusters.kubernetes.options import Addresses
from tests.integrations._support.manifests import given

BETA = (HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "staff")),)
PREFIXES = ("", "/serving/default/digits", "/serving/default/digits-preview")
"""By host, by path, and of the preview."""
PATHS = ("/v1/models/digits:explain", "/v2/models/digits/explain")


def service() -> Desired:
    """Return a service with an explainer, callers, limits, web pages, a group and a preview."""
    desired, _, _ = given("explainer")
    stable, canary = desired.revisions
    return replace(
        desired,
        revisions=(stable, replace(canary, match=BETA)),
        preview=canary.name,
        access=Access(keys=("ci",)),
        limits=Limits(requests_per_second=5),
        cors=Cors(("https://app.example.com",)),
    )


def rendered(desired: Desired) -> list[Manifest]:
    _, shares, options = given("explainer")
    return render(desired, shares, replace(options, addresses=Addresses.BOTH, domain="models.test"))


def explained(made: list[Manifest]) -> Iterator[tuple[Manifest, dict[str, Any]]]:
    """Yield each rule that leads to an explainer, or copies to it, and its route."""
    for route in made:
        for rule in route["spec"]["rules"] if route["kind"].endswith("Route") else ():
            copies = [
                each["requestMirror"]["backendRef"] for each in rule.get("filters", ()) if "requestMirror" in each
            ]
            if any(companion_of(each["name"]) is CompanionKind.EXPLAINER for each in (*rule["backendRefs"], *copies)):
                yield route, rule


def test_an_explainer_gets_explain_requests_alone_each_by_its_whole_path() -> None:
    """So an encoded colon, a slash more or another case is a request to the predictor, which knows no such model."""
    matches = [match for _, rule in explained(rendered(service())) for match in rule["matches"]]
    assert {(match["method"], match["path"]["type"]) for match in matches} == {("POST", "Exact")}
    assert {match["path"]["value"] for match in matches} == {f"{prefix}{call}" for prefix in PREFIXES for call in PATHS}


def test_callers_and_limits_are_checked_on_every_route_to_an_explainer() -> None:
    made = rendered(service())
    policies = [each for each in made if each["kind"] in ("SecurityPolicy", "BackendTrafficPolicy")]
    assert len(policies) == 2
    found = list(explained(made))
    assert {route["metadata"]["name"] for route, _ in found} == {
        *("digits", "digits-host", "digits-match", "digits-match-host", "digits-preview", "digits-preview-host")
    }
    for route, rule in found:
        labels = route["metadata"]["labels"]
        for policy in policies:
            selected = {"group": "gateway.networking.k8s.io", "kind": route["kind"], "matchLabels": {SERVICE: "digits"}}
            assert selected in policy["spec"]["targetSelectors"]
            assert labels[SERVICE] == "digits"
            assert not any("sectionName" in each for each in policy["spec"]["targetSelectors"]), "no rule is left out"
        assert rule["filters"][0] == WITHHOLD_TOKEN, "an explainer gets no token"


def test_nothing_is_copied_to_an_explainer() -> None:
    desired = service()
    stable, canary = desired.revisions
    shadowed = replace(desired, revisions=(stable, replace(canary, match=(), mirror_percent=100)))
    filters = [each for _, rule in explained(rendered(shadowed)) for each in rule["filters"]]
    assert not [each for each in filters if each["type"] == "RequestMirror"]


@pytest.mark.parametrize("field", ["command", "args", "env"])
def test_what_its_author_writes_opens_no_control_calls_and_no_other_predictor(field: str) -> None:
    desired = service()
    stable, canary = desired.revisions
    assert canary.explainer is not None
    words: Any = {"command": ("sh", "-c", "x"), "args": ("--predictor_host=elsewhere:80",), "env": {}}[field]
    hostile = {"FAIRLEAD_ALLOW_CONTROL_CALLS": "true"} if field == "env" else words
    own: dict[str, Any] = {field: hostile}
    bent = replace(canary, explainer=replace(canary.explainer, **own))
    made = rendered(replace(desired, revisions=(stable, bent)))
    its = next(each for each in made if each["metadata"]["name"] == "digits-00002-explainer")
    (container,) = its["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == "--predictor_host=digits-00002-transformer.default:8000"
    assert {"name": "FAIRLEAD_ALLOW_CONTROL_CALLS", "value": "false"} in container["env"]
    assert its["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
