"""Gateways of a cluster file: which namespaces each serves, and what is refused."""

from typing import Any

import pytest

from clusters.domain.cluster_file import parse_cluster
from clusters.domain.cluster_file.gateways import refuse_sudden_moves
from common.errors import InvalidInput
from integrations.clusters.kubernetes.options import GatewayReference, Options
from tests.deployments._support.cluster_files import LEAST

MODELS, A, B = (GatewayReference(name, "gateways") for name in ("models", "a", "b"))


def entry(name: str, *namespaces: str, **more: Any) -> dict[str, Any]:
    return {"url": f"https://{name}.test", "name": name, "namespace": "gateways", "namespaces": [*namespaces], **more}


def parsed(*gateways: dict[str, Any], leaving: tuple[str, ...] = ()) -> Options:
    main = {**LEAST["gateway"], "leaving": [*leaving]}
    return parse_cluster({**LEAST, "gateway": main, "gateways": [*gateways]}).options


def served(options: Options, namespace: str) -> tuple[GatewayReference, ...]:
    found = options.of_namespace(namespace)
    return (found.gateway, *found.also)


def test_a_namespace_is_served_by_the_first_gateway_that_has_it_else_by_the_main_one() -> None:
    options = parsed(entry("a", "vision", "ml-*"), entry("b", "ml-large", "speech", rateLimits=True))
    found = {name: served(options, name) for name in ("default", "vision", "visions", "ml-small", "ml-large", "speech")}
    assert found == {
        "default": (MODELS,),
        "vision": (A,),
        "visions": (MODELS,),
        "ml-small": (A,),
        "ml-large": (A,),
        "speech": (B,),
    }
    assert [options.of_namespace(name).rate_limits for name in ("default", "vision", "speech")] == [False, False, True]


def test_a_namespace_that_leaves_a_gateway_is_served_there_too() -> None:
    options = parsed(entry("a", "vision"), entry("b", "speech", leaving=["vision", "default"]), leaving=("vision",))
    assert served(options, "vision") == (A, B, MODELS)
    assert served(options, "default") == (MODELS, B), "back to the main one"
    assert served(options, "speech") == (B,)


def test_one_gateway_alone_serves_every_namespace() -> None:
    options = parse_cluster(LEAST).options
    assert served(options, "vision") == (MODELS,)
    assert served(parsed(leaving=("vision",)), "vision") == (MODELS,), "it leaves to none"


@pytest.mark.parametrize(
    ("gateways", "field", "sentence"),
    [
        ([entry("a")], "gateways[0].namespaces", "is missing; name the namespaces that the Gateway serves"),
        (
            [entry("a", "Vision")],
            "gateways[0].namespaces",
            "is no list of namespaces; write their names, or beginnings",
        ),
        ([entry("a", "*")], "gateways[0].namespaces", "is no list of namespaces"),
        ([entry("a", "x", leaving="y")], "gateways[0].leaving", "is no list of namespaces"),
        ([entry("a", "x", url="a.test")], "gateways[0].url", "expected where clients reach the gateway"),
        ([entry("a", "x", domain="y")], "gateways[0].domain", "is not a field"),
        ([entry("a", "x"), entry("b", "x")], "gateways", "names the namespace x twice; name it once"),
        ([entry("a", "x"), entry("a", "y")], "gateways", "names the Gateway a in gateways twice; name it once"),
        ([entry("models", "x")], "gateways", "names the Gateway models in gateways twice"),
        ({"a": {}}, "gateways", "expected a list"),
    ],
)
def test_what_is_wrong_with_a_gateway_is_named(gateways: Any, field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_cluster({**LEAST, "gateways": gateways})
    assert sentence in refused.value.message
    assert refused.value.field == field


def test_services_may_not_lose_the_gateway_that_their_clients_use() -> None:
    one, moved = parsed(entry("b", "speech")), parsed(entry("a", "vision"), entry("b", "speech"))
    sentence = "services of vision would be at Gateway a alone, but their clients use Gateway models; name vision as"
    with pytest.raises(InvalidInput, match=sentence):
        refuse_sudden_moves(one, moved, {"vision", "default"})
    refuse_sudden_moves(one, moved, {"default", "speech"})
    moving = parsed(entry("a", "vision"), entry("b", "speech"), leaving=("vision",))
    refuse_sudden_moves(one, moving, {"vision"})
    refuse_sudden_moves(moving, moved, {"vision"})
    with pytest.raises(InvalidInput, match="clients use Gateway a; name vision as leaving of a"):
        refuse_sudden_moves(moved, parsed(entry("a", "x"), entry("b", "speech")), {"vision"})
    refuse_sudden_moves(moved, one, {"vision"})


def test_a_gateway_that_leaves_the_file_takes_its_addresses_with_it() -> None:
    refuse_sudden_moves(parsed(entry("a", "vision")), parsed(entry("b", "vision")), {"vision"})
