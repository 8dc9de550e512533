"""What a Gateway says of a route, in one sentence with what to do."""

from typing import Any

import pytest

from integrations.clusters.kubernetes.manifests.names import GENERATION
from integrations.clusters.kubernetes.observe.gateway import (
    confirmation,
    confirmed_before,
    must_hold,
    policy_problem,
    route_problem,
)
from integrations.clusters.kubernetes.options import GatewayReference, Options

GATEWAY = GatewayReference("gateway", "gateways", http_listener="web")
PARENT = {"name": "gateway", "namespace": "gateways", "sectionName": "web"}


def route(*conditions: dict[str, Any], generation: int = 3, parent: dict[str, str] | None = None) -> dict[str, Any]:
    held = {each["type"]: {"status": "True", "observedGeneration": generation, **each} for each in conditions}
    for name in ("Accepted", "ResolvedRefs"):
        held.setdefault(name, {"type": name, "status": "True", "observedGeneration": generation})
    return {
        "kind": "HTTPRoute",
        "metadata": {"name": "digits", "namespace": "default", "generation": 3},
        "spec": {"parentRefs": [PARENT], "hostnames": ["digits.default.example.org"]},
        "status": {"parents": [{"parentRef": parent or PARENT, "conditions": list(held.values())}]},
    }


def refused(kind: str, reason: str, message: str = "as it says") -> dict[str, Any]:
    return {"type": kind, "status": "False", "reason": reason, "message": message}


def test_a_route_that_is_taken_has_no_problem() -> None:
    assert route_problem(route(), GATEWAY) == ""


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        pytest.param(
            refused("Accepted", "NotAllowedByListeners"),
            "does not take HTTPRoute digits: none of its listeners takes such routes from the namespace default; set "
            "allowedRoutes of a listener so that it takes HTTPRoutes from there (NotAllowedByListeners: as it says)",
            id="listeners that let nobody in",
        ),
        pytest.param(
            refused("Accepted", "NoMatchingListenerHostname"),
            "none of its listeners is for the host digits.default.example.org; give a listener that host",
            id="a host of nobody",
        ),
        pytest.param(refused("Accepted", "NoMatchingParent"), "it has no listener web;", id="no such listener"),
        pytest.param(
            refused("ResolvedRefs", "RefNotPermitted"), "which a ReferenceGrant there has to permit", id="no grant"
        ),
        pytest.param(
            refused("ResolvedRefs", "BackendNotFound", ""),
            "the Service of a revision is not there; it is made again, and if not, look who deletes it "
            "(BackendNotFound)",
            id="no such Service",
        ),
        pytest.param(
            refused("Accepted", "example.org/TooManyRoutes", "64 of 64"),
            "does not take HTTPRoute digits: example.org/TooManyRoutes: 64 of 64",
            id="a reason of the gateway's own",
        ),
        pytest.param(
            {"type": "PartiallyInvalid", "status": "True", "reason": "UnsupportedValue", "message": "rule 2"},
            "takes only a part of HTTPRoute digits: it does not support something that the route asks for",
            id="rules that were left out",
        ),
    ],
)
def test_a_reason_becomes_a_sentence_with_what_to_do(condition: dict[str, Any], sentence: str) -> None:
    assert sentence in route_problem(route(condition), GATEWAY)


def test_what_was_said_of_an_older_generation_does_not_count() -> None:
    assert route_problem(route(generation=2), GATEWAY) == "the gateway gateway has not taken up HTTPRoute digits yet"


def test_what_another_gateway_says_does_not_count() -> None:
    other = {"name": "other", "namespace": "gateways"}
    assert "the gateway gateway in gateways says nothing of HTTPRoute digits" in route_problem(
        route(parent=other), GATEWAY
    )


def policy(*conditions: dict[str, Any], name: str = "gateway") -> dict[str, Any]:
    ancestor = {"ancestorRef": {"name": name, "namespace": "gateways"}, "conditions": list(conditions)}
    return {"kind": "SecurityPolicy", "metadata": {"name": "digits"}, "status": {"ancestors": [ancestor]}}


ACCEPTED = {"type": "Accepted", "status": "True", "reason": "Accepted"}
CONFLICTED = refused("Accepted", "Conflicted", "another policy is older")


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        pytest.param(policy(ACCEPTED), "", id="accepted"),
        pytest.param(
            policy(CONFLICTED),
            "the gateway gateway does not apply SecurityPolicy digits: Conflicted: another policy is older",
            id="refused",
        ),
        pytest.param(policy(), "the gateway gateway has not taken up SecurityPolicy digits yet", id="without a word"),
        pytest.param(policy(ACCEPTED, name="other"), "has not taken up SecurityPolicy", id="another gateway's word"),
        pytest.param({**policy(), "status": {}}, "has not taken up SecurityPolicy", id="new"),
    ],
)
def test_what_a_gateway_says_of_a_policy(found: dict[str, Any], sentence: str) -> None:
    problem = policy_problem(found, GATEWAY)
    assert sentence in problem
    assert bool(problem) == bool(sentence)


def leading_to(*backends: str) -> dict[str, Any]:
    made = route()
    made["metadata"]["annotations"] = {GENERATION: "7"}
    made["spec"]["rules"] = [{"backendRefs": [{"name": name, "weight": 1} for name in backends]}]
    return made


@pytest.mark.parametrize(
    ("routes", "policies", "holds"),
    [
        pytest.param([], [], True, id="nothing there"),
        pytest.param([], [policy(ACCEPTED)], False, id="a policy in force, of a service that comes back"),
        pytest.param([leading_to("fairlead-digits")], [policy()], True, id="held, not taken up"),
        pytest.param([leading_to("fairlead-digits")], [policy(CONFLICTED)], True, id="held, refused"),
        pytest.param([leading_to("fairlead-digits")], [policy(ACCEPTED)], False, id="held, taken up"),
        pytest.param([], [{**policy(ACCEPTED), "kind": "BackendTrafficPolicy"}], True, id="only the other one"),
        pytest.param([leading_to("digits-00001")], [], False, id="public so far: clients are not cut off"),
    ],
)
def test_routes_are_held_until_the_gateway_has_the_policy(
    routes: list[dict[str, Any]], policies: list[dict[str, Any]], holds: bool
) -> None:
    assert must_hold("digits", routes, {"SecurityPolicy"}, policies, GATEWAY) == holds
    assert not must_hold("digits", routes, (), policies, GATEWAY), "it needs none"


def test_a_policy_that_is_not_applied_leaves_the_routing_confirmed_but_not_its_generation() -> None:
    main = leading_to("digits-00001")
    assert confirmation("digits", [main], GATEWAY, [policy(ACCEPTED)]).routed.generation == 7
    found = confirmation("digits", [main], GATEWAY, [policy(CONFLICTED)])
    assert (found.routed.generation, found.routed.weights) == (6, {"digits-00001": 1})
    assert "does not apply SecurityPolicy digits" in found.problem


def test_while_a_service_moves_what_the_gateway_that_it_leaves_confirmed_is_kept() -> None:
    new = GatewayReference("new", "gateways")
    routes = [leading_to("digits-00001")]
    assert confirmed_before("digits", routes, Options(new, "image", also=(GATEWAY,))).weights == {"digits-00001": 1}
    assert confirmed_before("digits", routes, Options(new, "image")).weights == {}, "it was taken from the old one"
