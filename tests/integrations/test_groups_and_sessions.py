"""Who gets which revision, with real Envoy: a group by its headers, and sessions that stay where they are."""

from typing import Any

import grpc
import pytest

from integrations.clusters.base import HeaderMatch, MatchKind, SessionAffinity
from integrations.metrics.counters import collect

INFER = "/serving/default/digits/v2/models/digits/infer"
GRPC_INFER = "/inference.GRPCInferenceService/ModelInfer"
STABLE, CANARY = "digits-00001", "digits-00002"
DEADLINE_S = 60.0


def both(cluster: Any, generation: int, weight: int, affinity: SessionAffinity | None = None, **canary: Any) -> None:
    """Bring the canary to `weight`, and wait until the gateway confirms it."""
    cluster.apply(
        generation, cluster.revision(1, 100 - weight), cluster.revision(2, weight, **canary), affinity=affinity
    )
    cluster.until_weights(r1=100 - weight, r2=weight)


def http(cluster: Any, path: str = INFER, **headers: str) -> str:
    """Return who answered an HTTP request."""
    method = "POST" if path.endswith("infer") else "GET"
    status, answer, _ = cluster.request(path, method, b"{}" if method == "POST" else None, **headers)
    assert status == 200
    return str(answer["fairlead-revision"])


def call(cluster: Any, **metadata: str) -> str:
    """Return who answered a gRPC request."""
    named = [("fairlead-service", "default/digits"), *((key.replace("_", "-"), text) for key, text in metadata.items())]
    with grpc.insecure_channel(cluster.url.removeprefix("http://")) as channel:
        _, done = channel.unary_unary(GRPC_INFER).with_call(b"", metadata=named, timeout=20)
    return str(dict(done.initial_metadata())["fairlead-revision"])


def sample(cluster: Any, revision: str) -> int:
    """Return how many requests the gateway counted for a revision."""
    return next(
        each.requests for each in collect(cluster.observe()) if (each.source, each.revision) == ("gateway", revision)
    )


def test_a_group_and_nobody_else_gets_the_canary(cluster, traffic, eventually):
    match = (
        HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "in.house")),
        HeaderMatch("x-region", MatchKind.PREFIX, ("eu-",)),
    )
    cluster.start()
    both(cluster, 1, 0)
    cluster.until_ready(2)
    before = sample(cluster, STABLE), sample(cluster, CANARY)
    assert http(cluster, x_group="beta", x_region="eu-1") == STABLE
    with traffic(cluster.url) as others:
        both(cluster, 2, 0, match=match)
        eventually(
            lambda: cluster.observe().revision(CANARY).match == match, "the gateway confirms the group", DEADLINE_S
        )
        for group in ("beta", "in.house"):
            assert http(cluster, x_group=group, x_region="eu-1") == CANARY
            assert call(cluster, x_group=group, x_region="eu-west") == CANARY
        others.until_sent(200)
        assert http(cluster, INFER.removesuffix("/infer"), x_group="beta", x_region="eu-1") == CANARY, "metadata too"
        assert http(cluster, INFER.replace("/infer", "/versions/1/infer"), x_group="beta", x_region="eu-1") == STABLE
        for headers in (
            {"x_group": "beta"},
            {"x_group": "inxhouse", "x_region": "eu-1"},
            {"x_group": "beta", "x_region": "us"},
        ):
            assert http(cluster, **headers) == STABLE
            assert call(cluster, **headers) == STABLE
    assert others.failures == []
    assert set(others.by_revision()) == {STABLE}
    own = sample(cluster, STABLE) - before[0], sample(cluster, CANARY) - before[1]
    assert own == (len(others.outcomes) + 1 + 1 + 6, 4), "the analysis counts the group as the canary's"


def test_a_group_goes_to_stable_while_its_canary_is_not_ready(cluster):
    match = (HeaderMatch("x-group", MatchKind.EXACT, ("beta",)),)
    cluster.start()
    both(cluster, 1, 0, match=match, env={"MODEL_START": "never-ready"})
    assert cluster.observe().revision(CANARY).match == ()
    assert http(cluster, x_group="beta") == STABLE


SESSIONS = [f"user-{number}" for number in range(150)]


@pytest.mark.parametrize("ask", [http, call])
def test_a_session_of_the_canary_stays_with_it_while_its_weight_rises(cluster, eventually, ask):
    affinity = SessionAffinity(CANARY, header="x-session")
    cluster.start()
    both(cluster, 1, 10, affinity)
    before: set[str] = set()
    for generation, weight in enumerate([10, 30, 60, 100], start=2):
        both(cluster, generation, weight, affinity)
        now = {session for session in SESSIONS if ask(cluster, x_session=session) == CANARY}
        again = {session for session in SESSIONS if ask(cluster, x_session=session) == CANARY}
        assert again == now, "within a step nobody moves"
        assert before <= now, "who has the canary keeps it"
        assert len(now) / len(SESSIONS) == pytest.approx(weight / 100, abs=0.15)
        before = now
    assert before == set(SESSIONS)


def test_without_the_header_chance_decides(cluster):
    cluster.start()
    both(cluster, 1, 50, SessionAffinity(CANARY, header="x-session"))
    assert {http(cluster) for _ in range(40)} == {STABLE, CANARY}


def test_the_gateway_gives_a_cookie_that_leads_to_the_same_revision(cluster):
    affinity = SessionAffinity(CANARY, cookie="digits-session", cookie_ttl_s=600)
    cluster.start()
    both(cluster, 1, 30, affinity)
    jars: dict[str, str] = {}
    for _ in range(60):
        status, answer, _ = cluster.request(INFER, "POST", b"{}")
        assert status == 200
        cookie, *rest = answer["set-cookie"].split("; ")
        assert rest == ["Path=/serving/default/digits", "Max-Age=600", "HttpOnly", "SameSite=Lax"]
        jars[cookie] = answer["fairlead-revision"]
    assert len(jars) == 60, "each client is a session of its own, over whatever connection it comes"
    assert set(jars.values()) == {STABLE, CANARY}
    for cookie, revision in jars.items():
        status, answer, _ = cluster.request(INFER, "POST", b"{}", cookie=f"theme=dark; {cookie}; x=y")
        assert (answer["fairlead-revision"], "set-cookie" in answer) == (revision, False)
    both(cluster, 2, 60, affinity)
    for cookie, revision in jars.items():
        if revision == CANARY:
            assert http(cluster, cookie=cookie) == CANARY
    both(cluster, 3, 100, affinity)
    assert "set-cookie" not in cluster.request(INFER, "POST", b"{}")[1], "nothing is left to choose"
