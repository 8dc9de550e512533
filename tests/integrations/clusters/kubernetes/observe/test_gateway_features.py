"""What a gateway's class lets a service ask for."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import Access, Cors, Desired, DesiredRevision, HeaderMatch, Limits, MatchKind
from integrations.clusters.kubernetes.observe.gateway_features import GatewayClass, asks_much, refuse_unsupported

BEGINS = (HeaderMatch("x-client", MatchKind.PREFIX, ("app/2.",)),)
IS = (HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "staff")),)
ENVOY_GATEWAY = "gateway.envoyproxy.io/gatewayclass-controller"


def desired(**more: Any) -> Desired:
    canary = DesiredRevision("digits-00002", "digits", "2", "file:///2", "sha256:2", 1, 0, **more)
    return Desired("default", "digits", 1, (canary,))


def its_class(controller: str, *features: str) -> GatewayClass:
    gateway = {"spec": {"gatewayClassName": "plain"}}
    status = {"supportedFeatures": [{"name": name} for name in features]}
    return GatewayClass.read(gateway, {"spec": {"controllerName": controller}, "status": status})


@pytest.mark.parametrize(
    ("wish", "of", "sentence"),
    [
        pytest.param(
            {"mirror_percent": 20},
            its_class("example.org/plain"),
            "digits-00002 is to get copies of 20 % of the requests, but class plain of gateway gateway is not known "
            "to support HTTPRouteRequestPercentageMirror; copy all of them (mirror: 100), or use another gateway",
            id="a share of copies, of a class that tells nothing",
        ),
        pytest.param(
            {"mirror_percent": 100},
            its_class("example.org/plain", "HTTPRoutePathRewrite"),
            "support HTTPRouteRequestMirror; roll out by weights",
            id="copies, of a class that leaves them out",
        ),
        pytest.param(
            {"match": BEGINS},
            its_class("example.org/plain", "HTTPRouteRequestMirror"),
            "support header matches by regular expression; name whole values by exact or anyOf",
            id="the beginning of a header",
        ),
        pytest.param({"match": BEGINS}, GatewayClass(), "gateway gateway was not found", id="no gateway at all"),
    ],
)
def test_what_a_gateway_is_not_known_to_have_is_refused(wish: dict[str, Any], of: GatewayClass, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        refuse_unsupported(desired(**wish), of, "gateway")
    assert sentence in refused.value.message
    assert refused.value.field == next(iter(wish))


@pytest.mark.parametrize(
    ("wish", "of"),
    [
        pytest.param({"mirror_percent": 100}, its_class("example.org/plain"), id="all copies, of who tells nothing"),
        pytest.param(
            {"mirror_percent": 20},
            its_class("example.org/plain", "HTTPRouteRequestMirror", "HTTPRouteRequestPercentageMirror"),
            id="a share of copies, of a class that says it can",
        ),
        pytest.param({"mirror_percent": 20}, its_class(ENVOY_GATEWAY), id="a share of copies, of Envoy Gateway"),
        pytest.param({"match": BEGINS}, its_class(ENVOY_GATEWAY), id="the beginning of a header, of Envoy Gateway"),
        pytest.param({"match": IS}, its_class("example.org/plain"), id="whole values, of any"),
    ],
)
def test_what_a_gateway_has_is_let_through(wish: dict[str, Any], of: GatewayClass) -> None:
    refuse_unsupported(desired(**wish), of, "gateway")


def test_weights_and_whole_values_need_no_look_at_the_class() -> None:
    assert not asks_much(desired(match=IS))
    assert asks_much(desired(match=BEGINS))


@pytest.mark.parametrize(
    ("field", "wish"),
    [
        ("spec.access", {"access": Access()}),
        ("spec.cors", {"cors": Cors(("https://app.example.com",))}),
        ("spec.limits", {"limits": Limits(5)}),
    ],
)
def test_who_may_call_how_often_and_from_where_is_enforced_by_envoy_gateway_and_no_other(
    field: str, wish: dict[str, Any]
) -> None:
    asked = replace(desired(), **wish)
    assert asks_much(asked)
    refuse_unsupported(asked, its_class(ENVOY_GATEWAY), "gateway")
    match = f"{field} of digits .*, but class plain of gateway gateway is not known to support policies of Envoy"
    with pytest.raises(InvalidInput, match=match) as refused:
        refuse_unsupported(asked, its_class("example.org/plain", "HTTPRouteRequestMirror"), "gateway")
    assert refused.value.field == field
