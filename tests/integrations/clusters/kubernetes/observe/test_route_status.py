"""What a Gateway says of a route, in one sentence with what to do."""

from typing import Any

import pytest

from integrations.clusters.kubernetes.observe.gateway import route_problem
from integrations.clusters.kubernetes.options import GatewayReference

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
