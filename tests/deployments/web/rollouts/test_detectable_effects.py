from deployments.domain.policy import Gate, Policy, Step
from deployments.models import AnalysisRun
from deployments.selectors import AnalysisRunView, rollout_policy
from deployments.web.rollouts.detectable_effects import foreseen_of
from tests._support.page import marked
from tests.deployments._support.pages import DETAIL, signed_in, text
from tests.deployments._support.platform import Platform

POLICY = Policy("p", (Step(10, gate=Gate()), Step(50)))


def _run(platform: Platform) -> AnalysisRunView:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(AnalysisRun.objects.exists)
    platform.traffic()
    platform.turn()
    rollout = platform.view().rollout
    assert rollout is not None
    return rollout.analysis_runs[-1]


def test_the_present_step_tells_what_it_could_find(platform: Platform) -> None:
    run = _run(platform)
    said = foreseen_of(run, rollout_policy(rollout_id=platform.rollout().pk))
    assert [sentence.partition(" of its requests")[0] for sentence in said] == [
        "a canary that fails 5 %",
        "a canary that refuses 5 %",
        "a canary that is slow on 30 %",
    ]
    assert foreseen_of(None, POLICY) == ()


def test_a_rollout_that_is_over_tells_nothing_any_more(platform: Platform) -> None:
    run = _run(platform)
    platform.bad_time(failed=8)
    rollout = platform.view().rollout
    assert rollout is not None
    assert (rollout.phase, foreseen_of(rollout.analysis_runs[-1], POLICY)) == ("Degraded", ())
    assert run.finished_at is None


def test_the_page_shows_it(platform: Platform) -> None:
    _run(platform)
    page = text(signed_in(), DETAIL)
    assert marked(page, "what-it-finds")
    assert "A canary that fails 5 % of its requests is failed after about" in page
