"""A service that moves into a pool, or out of it, on Kubernetes: step by step, as the gateway confirms them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.routes.client_groups import is_closed
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Own, Seen, Stage, decide, earned, own_count
from tests.integrations._support.pool_options import OPTIONS

POOLED = DesiredRevision("digits-00001", "digits", "1", "file:///models/a", "sha256:aa", 1, 100, pool="default/warm")
NEXT = DesiredRevision("digits-00002", "digits", "2", "file:///models/b", "sha256:bb", 3, 0)
OLD, POOLED_NEXT = replace(POOLED, pool="", replicas=3), replace(NEXT, pool="default/warm", replicas=1)
BOTH = {POOLED.name: 3, NEXT.name: 3}
OUT = [Stage.POOL, Stage.KNOWN, Stage.OWN, Stage.MOVED, Stage.TWICE, Stage.PLAIN]


def desired(*revisions: DesiredRevision) -> Desired:
    return Desired("default", "digits", 1, revisions)


def steps(wanted: Desired, at: Stage, *, confirmed: bool = True) -> Iterator[Own]:
    """Yield what each turn decides until it decides the same again; all pods are ready throughout."""
    while True:
        pods = frozenset(BOTH) if earned(wanted) or at not in (Stage.KNOWN, Stage.POOL) else frozenset()
        scales = BOTH if pods else {}
        own = decide(wanted, Seen(at, confirmed, scales, scales, pods), set(BOTH))
        yield own
        if own.stage is at:
            return
        at = own.stage


def test_a_service_leaves_its_pool_by_one_step_after_the_other() -> None:
    moving = desired(POOLED, NEXT)
    assert [own.stage for own in steps(moving, Stage.POOL)] == [*OUT[1:], Stage.PLAIN]
    for at in OUT[1:]:
        assert [own.stage for own in steps(moving, at, confirmed=False)] == [at], "the gateway has not confirmed it"
    assert earned(moving) == {POOLED.name}
    assert own_count(moving, POOLED) == 3, "as many as the new revision has"
    alone = desired(replace(NEXT, weight_percent=100))
    ended = list(steps(alone, Stage.OWN))
    assert [own.stage for own in ended] == [Stage.MOVED, Stage.TWICE, Stage.PLAIN, Stage.PLAIN]
    assert [own.has_left for own in ended] == [False, False, False, True]


def test_a_service_comes_into_a_pool_once_all_revisions_are_in_it() -> None:
    moving = desired(OLD, POOLED_NEXT)
    assert [own.stage for own in steps(moving, Stage.PLAIN)] == [Stage.PLAIN], "an ordinary rollout"
    assert earned(moving) == {NEXT.name}
    alone = desired(replace(POOLED_NEXT, weight_percent=100))
    found = list(steps(alone, Stage.PLAIN))
    assert [own.stage for own in found] == [*reversed(OUT[:-1]), Stage.POOL]
    assert [own.held for own in found[:4]] == [{NEXT.name}] * 4, "its own replicas stay as they are"
    unloaded = decide(alone, Seen(Stage.OWN, True, BOTH, BOTH, frozenset(BOTH)), set())
    assert unloaded.stage is Stage.OWN, "the pool has not loaded the model"


def test_a_move_that_is_undone_goes_back() -> None:
    for at in (Stage.MOVED, Stage.TWICE, Stage.PLAIN):
        found = [own.stage for own in steps(desired(POOLED), at)]
        assert found[-1] is Stage.POOL, "an aborted way out of the pool"
    assert [own.stage for own in steps(desired(OLD), Stage.PLAIN)] == [Stage.PLAIN], "an aborted way in"


def test_without_any_replica_to_go_on_with_the_one_that_is_left_answers_at_once() -> None:
    none = Seen(Stage.PLAIN, True, {}, {}, frozenset())
    assert decide(desired(POOLED), none, ()).stage is Stage.POOL
    assert decide(desired(OLD), replace(none, stage=Stage.KNOWN), ()).stage is Stage.PLAIN
    failing = replace(none, stage=Stage.OWN)
    assert decide(desired(POOLED, NEXT), failing, {POOLED.name}).stage is Stage.KNOWN, "the pool answers again"


def routes(wanted: Desired, own: Own) -> dict[tuple[str, str], list[Manifest]]:
    """Return the rules of the routes that a stage has; all requests are those of the revision with the weight."""
    shares = {each.name: each.weight_percent for each in wanted.revisions}
    made = [each for each in render(wanted, shares, OPTIONS, beside_pool=own) if each["kind"].endswith("Route")]
    return {(each["kind"], each["metadata"]["name"]): each["spec"]["rules"] for each in made}


def clusters(rules: list[Manifest], *, matching: bool) -> dict[tuple[int, int], tuple[str, str]]:
    """Return the gateway's clusters of rules by their places: one a rule, or one a backend where these have filters."""
    found = {}
    for at, rule in enumerate(rules):
        if matching and is_closed(rule):
            continue
        for index, backend in enumerate(rule["backendRefs"]):
            if backend["weight"]:
                found[at, index if "filters" in backend else -1] = (backend["name"], str(sorted(backend)))
    return found


@pytest.mark.parametrize(
    ("begun", "at", "ended"),
    [
        pytest.param(desired(POOLED, NEXT), Stage.POOL, desired(POOLED, NEXT), id="out of it"),
        pytest.param(desired(POOLED), Stage.PLAIN, desired(POOLED), id="undone"),
        pytest.param(
            desired(replace(OLD, weight_percent=0), replace(POOLED_NEXT, weight_percent=100)),
            Stage.PLAIN,
            desired(replace(POOLED_NEXT, weight_percent=100)),
            id="into it",
        ),
    ],
)
def test_requests_go_nowhere_that_the_gateway_did_not_know_before(begun: Desired, at: Stage, ended: Desired) -> None:
    before, turns = Own(at, present=frozenset(BOTH)), list(steps(ended, at))
    known, wanted = routes(begun, before), begun
    for own in turns:
        now = routes(ended, own)
        for key in now.keys() & known.keys():
            begin = clusters(now[key], matching=True).items()
            assert begin <= clusters(known[key], matching=False).items() or wanted is not ended, (own.stage, key)
            end = clusters(known[key], matching=True).items()
            assert end <= clusters(now[key], matching=False).items(), f"{own.stage}: {key} forgets what it still uses"
        known, wanted = now, ended
    assert {is_closed(rule) for rule in known["HTTPRoute", "digits"]} == {False}, "one kind of rules is left"
    assert len(turns) >= 5
