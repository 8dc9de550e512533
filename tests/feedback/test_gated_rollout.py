"""Rollouts gated by labels that come late, on the database with a fake outside and a clock moved by hand."""

from datetime import timedelta

import pytest
from django.db.models import F

from deployments.domain.phases import Code, Phase
from deployments.models import AnalysisRun, InferenceService
from deployments.reconcile import reconciler
from deployments.reconcile.reconciler import Outcome, Outside
from deployments.selectors import label_habits_fixed, rollout_policy
from deployments.services import rollout_abort
from deployments.services.dry_run import rollout_plan
from deployments.web.presentation import decides
from deployments.web.rollouts.detectable_effects import foreseen_of
from feedback.models import Kept, Score, ServiceScorer
from tests.feedback._support.labelled_platform import CANARY, STABLE, LabelledPlatform, wrong


@pytest.fixture
def platform(db: None) -> LabelledPlatform:
    """A service that serves version 1, with a minute of labelled answers."""
    platform = LabelledPlatform()
    platform.live()
    platform.keeps()
    for _ in range(30):
        platform.label(weight=0)
        platform.clock.go_on(2.0)
    return platform


def test_a_version_that_answers_fast_and_wrong_is_stopped(platform: LabelledPlatform) -> None:
    platform.losses[CANARY] = wrong(0.3)
    platform.rolls_out({"minLabels": 2000, "deadline": "1h"})
    platform.turns(300, until=lambda: platform.rollout().phase == Phase.DEGRADED)
    code, message = platform.reason()
    assert code == Code.ANALYSIS_FAILED
    assert "answers of the canary are wrong (3" in message
    assert "points more, limit 2" in message
    assert platform.cluster.weights() == {STABLE: 100, CANARY: 0}
    errors = next(each for each in AnalysisRun.objects.get().measurements if each["metric"] == "server_errors")
    assert errors["verdict"] == "Successful", "nothing else is wrong with it"


def test_a_good_version_passes_once_it_has_the_labels(platform: LabelledPlatform) -> None:
    platform.rolls_out({"maxWorse": 5, "minLabels": 150, "deadline": "1h"})
    platform.until(AnalysisRun.objects.exists)
    platform.turns(10)
    assert platform.measured()["message"].endswith("150 labels more, at today's rate until 12:01 (UTC)") or (
        "150 labels more, at today's rate until" in platform.measured()["message"]
    )
    platform.turns(100, until=lambda: platform.rollout().phase != Phase.PROGRESSING)
    found = platform.measured()
    assert (platform.rollout().phase, found["verdict"], found["unit"]) == (
        Phase.HEALTHY,
        "Successful",
        "percentage points",
    )


def test_it_waits_for_labels_beyond_the_deadline_of_the_rest_and_ends_inconclusive_at_its_own(
    platform: LabelledPlatform,
) -> None:
    platform.share = {CANARY: 0.05, STABLE: 0.5}
    platform.rolls_out({"minLabels": 5000, "deadline": "20m"})
    platform.turns(800, every=10.0)
    assert platform.rollout().phase == Phase.PROGRESSING, "the other measurements have 5m"
    assert " labels more, at today's rate until " in platform.reason()[1]
    platform.turns(600, every=10.0)
    code, message = platform.reason()
    assert (platform.rollout().phase, code) == (Phase.ABORTED, Code.ANALYSIS_INCONCLUSIVE)
    assert "undecided 20m after the first request: " in message


def test_labels_go_on_counting_in_the_background_of_later_steps(platform: LabelledPlatform) -> None:
    platform.losses[CANARY] = wrong(0.2)
    platform.version(2)
    platform.policy(
        name="behind",
        steps=[{"weight": 20, "hold": "10s"}, {"weight": 50, "hold": "30m"}],
        analysis={"minRequests": 50, "quality": {"scorer": "accuracy", "maxWorse": 2}},
    )
    platform.start(policy="behind")
    platform.turns(400, until=lambda: platform.rollout().phase == Phase.DEGRADED)
    assert platform.rollout().reason_code == Code.ANALYSIS_FAILED
    assert "answers of the canary are wrong" in platform.reason()[1]
    assert platform.measured(step_index=None)["verdict"] == "Failed"


def test_the_last_requests_of_a_step_count_in_the_next(platform: LabelledPlatform) -> None:
    platform.delay_s = 30.0
    Score.objects.update(labelled_at=F("answered_at") + timedelta(seconds=30))
    gate = {"minRequests": 20, "quality": {"scorer": "accuracy", "maxWorse": 5, "minLabels": 40}}
    platform.version(2)
    platform.policy(
        name="two", steps=[{"weight": 20, "analysis": gate}, {"weight": 40, "hold": "1h", "analysis": gate}]
    )
    platform.start(policy="two")
    platform.turns(200, until=lambda: AnalysisRun.objects.filter(step_index=1).exists())
    platform.turns(10)
    watch, blocks = platform.watched(1), platform.blocks(1)
    assert watch["habits"]["horizon_s"] == 30.0
    [waiting] = watch["waiting"]
    first, second = AnalysisRun.objects.order_by("step_index")
    assert first.started_at.timestamp() < waiting["start"] < waiting["ends"] <= second.started_at.timestamp()
    platform.turns(24)
    [left] = platform.watched(1)["waiting"]
    assert waiting["start"] < left["start"] < left["ends"] == waiting["ends"]
    assert platform.blocks(1) > blocks + 4, "blocks of the step before"
    assert platform.watched(1)["sums"] == {}, "which do not count as labels of this one"
    platform.turns(40)
    assert platform.watched(1)["waiting"] == []
    assert platform.watched(1)["sums"][""]["canary"]["labels"] > 0


def test_a_shadow_is_judged_by_pairs(platform: LabelledPlatform) -> None:
    """Only requests that both answered and that have a label count."""
    platform.copies = True
    platform.losses[CANARY] = wrong(0.3)
    platform.rolls_out({"minLabels": 5000, "deadline": "1h"}, step={"weight": 100}, strategy="shadow", then="promote")
    platform.turns(200, until=lambda: platform.rollout().phase == Phase.DEGRADED)
    assert platform.reason()[0] == Code.ANALYSIS_FAILED
    assert "answers of the shadow are wrong" in platform.reason()[1]
    sums = AnalysisRun.objects.get().evidence["labels"]["accuracy"]["sums"][""]
    assert sums["canary"]["labels"] == sums["stable"]["labels"]


def test_one_value_of_a_parameter_that_is_wrong_is_found_apart(platform: LabelledPlatform) -> None:
    platform.parameters = lambda random: {"region": "eu" if random.random() < 0.2 else "us"}
    platform.label(weight=0)
    platform.clock.go_on(10)
    platform.label(weight=0)
    platform.losses[CANARY] = wrong(0.3)
    platform.rolls_out({"minLabels": 5000, "slices": "region", "deadline": "1h"})
    platform.turns(80)
    runs = AnalysisRun.objects.get()
    assert {each["metric"] for each in runs.measurements} >= {
        "quality:accuracy", "quality:accuracy:region=eu", "quality:accuracy:region=us",
    }  # fmt: skip
    assert platform.measured("quality:accuracy:region=eu")["message"].startswith("where region is eu: ")


def test_what_is_missing_is_said_and_what_to_do(platform: LabelledPlatform) -> None:
    Kept.objects.all().delete()
    platform.share = {CANARY: 0.0}
    platform.rolls_out({})
    platform.until(AnalysisRun.objects.exists)
    platform.turns(4)
    assert "nothing is kept of the answers of service default/digits" in platform.measured()["message"]
    platform.keeps_again()
    ServiceScorer.objects.update(name="other")
    platform.turns(4)
    assert "service default/digits has no scorer accuracy" in platform.measured()["message"]
    ServiceScorer.objects.update(name="accuracy")
    platform.turns(150)
    assert "none came for requests to the canary in this step, although labels take 4s" in platform.reason()[1]


def test_a_look_that_a_crash_lost_is_taken_again_and_each_label_counts_once(platform: LabelledPlatform) -> None:
    platform.rolls_out({"minLabels": 5000, "deadline": "1h"})
    platform.turns(60)
    known = AnalysisRun.objects.get().evidence["labels"]["accuracy"]
    platform.clock.go_on(2)

    def overtaken(observed: object) -> object:
        InferenceService.objects.update(changes=1_000_000)
        return platform.metrics(observed)  # type: ignore[arg-type]

    outside = Outside(platform.cluster, overtaken, platform.clock)  # type: ignore[arg-type]
    assert reconciler.tick(InferenceService.objects.get().pk, outside) is Outcome.OVERTAKEN
    assert AnalysisRun.objects.get().evidence["labels"]["accuracy"] == known
    platform.turns(40)
    watch = AnalysisRun.objects.get().evidence["labels"]["accuracy"]
    rows = Score.objects.filter(revision=CANARY, answered_at__gte=AnalysisRun.objects.get().started_at)
    counted = [row for row in rows if row.answered_at.timestamp() < watch["now"]["start"]]
    assert watch["sums"][""]["canary"]["labels"] == len(counted) > 100


def test_the_dry_run_says_how_many_labels_find_the_regression(platform: LabelledPlatform) -> None:
    platform.version(2)
    gate = {"quality": {"scorer": "accuracy", "maxWorse": 2, "deadline": "1h"}, "detect": {"qualityWorse": 20}}
    platform.policy(name="labelled", steps=[{"weight": 20, "analysis": gate}])

    def planned() -> tuple[list[str], str]:
        plan = rollout_plan(
            namespace="default", name="digits", version="2", policy="labelled", actor="alice", now=platform.clock(),
            look=lambda _namespace, _name: (),
        ).plan  # fmt: skip
        assert plan.analysis is not None
        [step] = plan.analysis.steps
        by_labels = [each.message for each in step.detections if each.metric == "quality:accuracy"]
        return by_labels, "; ".join(step.warnings)

    [said], warned = planned()
    assert said.startswith("a canary whose answers are worse by 20 points is failed by accuracy after about ")
    assert said.endswith(" at the present rate of labels")
    assert "scorer" not in warned
    ServiceScorer.objects.all().delete()
    said_without, warned = planned()
    assert said_without == []
    assert "service default/digits has no scorer accuracy" in warned


def test_the_page_says_what_labels_could_find_in_the_present_step(platform: LabelledPlatform) -> None:
    rollout = platform.rolls_out({"minLabels": 5000, "deadline": "1h"})
    platform.turns(20)
    view = platform.view().rollout
    assert view is not None
    labels = label_habits_fixed(rollout_id=rollout.pk, step_index=0)
    said = foreseen_of(view.analysis_runs[-1], rollout_policy(rollout_id=rollout.pk), labels)
    assert said[-1].startswith("a canary whose answers are worse by 6 points is failed by accuracy after about ")
    measured = next(each for each in view.analysis_runs[-1].measurements if each.metric == "quality:accuracy")
    assert decides(measured, None).startswith("it passes with the labels that it needs, and fails once the evidence ")


def test_an_aborted_rollout_asks_no_more(platform: LabelledPlatform) -> None:
    rollout = platform.rolls_out({"minLabels": 5000, "deadline": "1h"})
    platform.turns(20)
    rollout_abort(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    platform.turns(4)
    assert platform.rollout().phase == Phase.ABORTED
