"""Copies, then a group, then a rising weight, through the whole loop on the database with a fake outside."""

from typing import Any

import pytest
from django.test import Client

from accounts.domain.scopes import Scope
from deployments.domain.phases import Phase
from deployments.models import AnalysisRun
from deployments.services import rollout_abort, rollout_promote, rollout_retry
from integrations.clusters.base import HeaderMatch, MatchKind, SessionAffinity
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.platform import Platform

GROUP = [{"header": "x-group", "exact": "beta"}]
MATCH = (HeaderMatch("x-group", MatchKind.EXACT, ("beta",)),)
GATE = {"minRequests": 100}
STEPS = [
    {"mirror": 20, "hold": "4s", "analysis": GATE},
    {"match": GROUP, "hold": "4s", "analysis": GATE},
    {"weight": 50, "hold": "4s", "analysis": GATE},
]


@pytest.fixture
def progressive(platform: Platform) -> Platform:
    """A service that serves version 1, and a rollout of version 2 by the policy `progressive`."""
    platform.live()
    platform.version(2)
    platform.policy(name="progressive", steps=STEPS, sessionAffinity={"cookie": {"name": "s", "ttl": "1h"}})
    platform.start(policy="progressive")
    platform.turn()
    return platform


def _given(platform: Platform) -> tuple[int, int, tuple[HeaderMatch, ...]]:
    """Return what the cluster was last asked to give the canary."""
    desired = platform.cluster.desired["default", "digits"]
    canary = next(each for each in desired.revisions if each.name == "digits-00002")
    return canary.weight_percent, canary.mirror_percent, canary.match


def _until_step(platform: Platform, step_index: int) -> None:
    """Serve until the canary has what a step gives: with traffic of everybody, and 100 requests of the group."""

    def there() -> bool:
        if platform.rollout().step_index >= step_index and AnalysisRun.objects.filter(step_index=step_index).exists():
            return True
        platform.traffic()
        if _given(platform)[2]:
            platform.metrics.serve("digits-00002", 100)
        return False

    platform.until(there)


def test_a_good_version_goes_all_the_way(progressive: Platform) -> None:
    seen = []
    for step_index in range(3):
        _until_step(progressive, step_index)
        seen.append(_given(progressive))
        affinity = progressive.cluster.desired["default", "digits"].affinity
        assert affinity == SessionAffinity("digits-00002", cookie="s", cookie_ttl_s=3600)
    assert seen == [(0, 20, ()), (0, 0, MATCH), (50, 0, ())]

    def healthy() -> bool:
        progressive.traffic()
        return progressive.rollout().phase == Phase.HEALTHY

    progressive.until(healthy)
    progressive.until(lambda: progressive.view().phase == "Ready")
    assert progressive.cluster.desired["default", "digits"].affinity is None, "there is one revision to go to"
    runs = AnalysisRun.objects.order_by("step_index")
    assert [(run.weight, run.mirror, run.verdict) for run in runs] == [
        (0, 20, "Successful"),
        (0, 0, "Successful"),
        (50, 0, "Successful"),
    ]


def test_each_step_is_judged_by_its_own_kind_of_requests(progressive: Platform) -> None:
    _until_step(progressive, 0)
    progressive.metrics.serve("digits-00002", 70, failed=70)  # by a client that names version 2, while it gets copies
    progressive.turn()
    assert progressive.rollout().phase == Phase.PROGRESSING
    _until_step(progressive, 1)
    progressive.metrics.serve("digits-00002", 70, failed=70, copies=True)  # copies that were still on their way
    progressive.turn()
    assert progressive.rollout().phase == Phase.PROGRESSING

    def failed() -> bool:
        progressive.metrics.serve("digits-00002", 70, failed=40)
        progressive.traffic(1000)
        return progressive.rollout().phase == Phase.DEGRADED

    progressive.until(failed)
    rollout = progressive.rollout()
    assert rollout.reason_code == "AnalysisFailed"
    assert "failed at step 2 of 3 (x-group: beta): " in rollout.reason_message
    assert "requests to the canary failed" in rollout.reason_message
    assert _given(progressive) == (0, 0, ())


def _page(platform: Platform) -> tuple[str, Any]:
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.ADMIN, "admin")})
    page = client.get("/services/default/digits/").content.decode().replace("\N{NO-BREAK SPACE}", " ")
    return page, platform.view().rollout


def test_page_and_api_tell_copies_a_group_and_a_weight_apart(progressive: Platform) -> None:
    _until_step(progressive, 0)
    page, view = _page(progressive)
    for words in ("Copied to canary", "Mirrors 20 % of the requests", "Analysis of copies of 20 %", "Copies 20 %"):
        assert words in page, words
    assert (view.weight_wanted, view.mirror_wanted, view.mirror_actual, view.match_wanted) == (0, 20, 20, ())
    assert "So far" not in page
    _until_step(progressive, 1)
    page, view = _page(progressive)
    for words in (
        "The canary gets the requests with x-group: beta; stable gets all others.",
        "Analysis of the requests with x-group: beta",
        "Step 2 of 3, x-group: beta",
    ):
        assert words in page, words
    assert marked(page, "no-sample")
    assert marked(page, "sessions-stay")
    assert (view.weight_wanted, view.mirror_wanted) == (0, 0)
    assert view.match_wanted == view.match_actual == tuple(GROUP)
    assert view.session_affinity == {"cookie": {"name": "s", "ttl": "1h"}}
    assert [(step.weight, step.mirror, step.match) for step in view.steps] == [
        (0, 20, ()),
        (0, 0, tuple(GROUP)),
        (50, 0, ()),
    ]
    _until_step(progressive, 2)
    page, view = _page(progressive)
    assert "Analysis at 50 %" in page
    assert (view.weight_wanted, view.mirror_wanted, view.match_wanted, view.match_actual) == (50, 0, (), ())


BACKGROUND = {"minRequests": 100, "maxErrorPercent": 5}


@pytest.fixture
def watched(platform: Platform) -> Platform:
    """A rollout with an analysis in the background alone: copies, a step of nothing but time, and a pause."""
    platform.live()
    platform.version(2)
    steps = [{"mirror": 50}, {"weight": 20, "hold": "10s"}, {"weight": 50, "pause": True}]
    platform.policy(name="watched", steps=steps, analysis=BACKGROUND, deadline="1h")
    platform.start(policy="watched")
    platform.turn()
    return platform


def _paused(platform: Platform) -> None:
    def there() -> bool:
        platform.traffic()
        return platform.rollout().phase == Phase.PAUSED

    platform.until(there)


def test_one_window_in_the_background_goes_through_all_steps_from_the_first_weight(watched: Platform) -> None:
    _until_step(watched, 0)
    assert not AnalysisRun.objects.filter(step_index=None).exists(), "while it gets copies no client sees it"
    _paused(watched)
    behind = AnalysisRun.objects.get(step_index=None)
    steps = AnalysisRun.objects.filter(step_index__gt=0)
    assert behind.canary_requests >= sum(run.canary_requests for run in steps) > 0
    assert (behind.verdict, behind.finished_at) == ("Successful", None)
    view = watched.view().rollout
    assert view is not None
    assert [run.step_index for run in view.analysis_runs] == [0, 1, 2, None]
    assert (view.seen_requests, view.analysis_runs[-1].has_gate) == (view.analysis_runs[2].requests.canary * 2, True)
    page, _ = _page(watched)
    assert "Analysis in the background" in page
    assert marked(page, "deadline")
    rollout_promote(rollout_id=watched.rollout().pk, actor="alice", now=watched.clock())
    watched.until(lambda: watched.rollout().phase == Phase.HEALTHY)
    assert AnalysisRun.objects.get(step_index=None).finished_at is not None


def test_what_goes_wrong_in_a_pause_is_found_in_the_background(watched: Platform) -> None:
    _paused(watched)

    def failed() -> bool:
        watched.traffic(failed=100)
        return watched.rollout().phase == Phase.DEGRADED

    watched.until(failed)
    rollout = watched.rollout()
    assert "the analysis in the background failed at step 3 of 3 (50 %): " in rollout.reason_message
    assert _given(watched) == (0, 0, ())
    assert {run.verdict for run in AnalysisRun.objects.filter(step_index=None)} == {"Failed"}


def test_a_retry_begins_a_window_of_its_own(watched: Platform) -> None:
    _paused(watched)
    rollout_abort(rollout_id=watched.rollout().pk, actor="alice", now=watched.clock())
    rollout_retry(rollout_id=watched.rollout().pk, actor="alice", now=watched.clock())
    _paused(watched)
    runs = AnalysisRun.objects.filter(step_index=None).order_by("attempt")
    assert [(run.attempt, run.finished_at is None) for run in runs] == [(1, False), (2, True)]


def test_a_rollout_that_comes_to_no_end_is_aborted_at_its_deadline(watched: Platform) -> None:
    _paused(watched)
    for _ in range(70):
        watched.turn(seconds=55)
    rollout = watched.rollout()
    assert (rollout.phase, rollout.reason_code) == (Phase.ABORTED, "DeadlineExceeded")


def test_a_night_in_which_nobody_could_look_counts_for_no_deadline(watched: Platform) -> None:
    _paused(watched)
    watched.turn(seconds=8 * 3600)
    assert watched.rollout().phase == Phase.PAUSED
