"""Which buttons a rollout has, and what the pages sum up."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from deployments.domain.waits.wait import Wait
from deployments.selectors import (
    AnalysisRunView,
    ReasonView,
    RequestsView,
    RevisionView,
    RolloutView,
    ServiceView,
    StepView,
)
from deployments.views.shapes import FileView, ModelStatusView
from deployments.web.presentation import actions_of, headline_of, progress_of, replicas_of, runs_newest_first

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = tuple(StepView(weight, 10.0, pause=False, analysis=None) for weight in (10, 25, 50))
ROLLOUT = RolloutView(
    id=7,
    service="default/digits",
    from_revision="digits-00001",
    to_revision="digits-00002",
    from_version=1,
    to_version=2,
    policy="careful",
    strategy="canary",
    phase="Progressing",
    attempt=1,
    step_index=1,
    steps=STEPS,
    weight_wanted=25,
    weight_actual=25,
    weight_seen_percent=None,
    seen_requests=0,
    reason=ReasonView("Holding", "held"),
    verdict="Running",
    analysis_runs=(),
    started_at=NOW,
    finished_at=None,
    created_by="alice",
)
SERVICE = ServiceView(
    id=1,
    namespace="default",
    name="digits",
    cluster="local",
    url="http://127.0.0.1:8090/serving/default/digits/v2/models/digits",
    phase="Progressing",
    reason="",
    model="digits",
    model_version=1,
    policy="careful",
    stable_revision="digits-00001",
    revisions=(),
    rollout=ROLLOUT,
    event_seq=1,
    changes=1,
    created_at=NOW,
    file=FileView(False, ""),
    model_status=ModelStatusView("InProgress", "Loaded", "Loading", None),
)


@pytest.mark.parametrize(
    ("phase", "verbs"),
    [
        pytest.param("Pending", ["abort"], id="before it begins it can be aborted"),
        pytest.param("Progressing", ["abort"], id="while it goes it can be aborted"),
        pytest.param("Paused", ["promote", "abort"], id="a pause can be left both ways"),
        pytest.param("Healthy", [], id="a promoted one is done"),
        pytest.param("Degraded", ["retry"], id="a failed one can be retried"),
        pytest.param("Aborted", ["retry"], id="an aborted one can be retried"),
    ],
)
def test_the_phase_decides_on_the_buttons(phase: str, verbs: list[str]) -> None:
    service = replace(SERVICE, rollout=replace(ROLLOUT, phase=phase))

    assert [action.verb for action in actions_of(service)] == verbs


def test_there_are_no_buttons_without_a_rollout_or_for_a_service_that_goes() -> None:
    assert actions_of(replace(SERVICE, rollout=None)) == ()
    assert actions_of(replace(SERVICE, phase="Deleting")) == ()


def test_a_rollout_from_a_revision_that_is_not_stable_any_more_cannot_be_retried() -> None:
    service = replace(SERVICE, stable_revision="digits-00003", rollout=replace(ROLLOUT, phase="Degraded"))

    assert actions_of(service) == ()


def test_a_question_says_what_will_happen() -> None:
    promote, abort = actions_of(replace(SERVICE, rollout=replace(ROLLOUT, phase="Paused")))
    last, _ = actions_of(replace(SERVICE, rollout=replace(ROLLOUT, phase="Paused", step_index=2)))

    assert promote.question == "Send 50 % of the requests to version 2?"
    assert last.question == "Send all of the requests to version 2?"
    assert abort.consequence == "All requests go back to version 1 (digits-00001) at once."


@pytest.mark.parametrize(
    ("rollout", "sentence"),
    [
        pytest.param(None, "", id="no rollout"),
        pytest.param(replace(ROLLOUT, phase="Pending"), "Not begun", id="the canary starts"),
        pytest.param(ROLLOUT, "Step 2 of 3, 25 %", id="in the middle"),
        pytest.param(replace(ROLLOUT, step_index=3), "Last move, 100 %", id="all steps done"),
        pytest.param(replace(ROLLOUT, phase="Healthy", step_index=3), "", id="over"),
    ],
)
def test_progress(rollout: RolloutView | None, sentence: str) -> None:
    assert progress_of(rollout) == sentence


def test_the_run_that_counts_now_comes_first() -> None:
    run = AnalysisRunView(0, 1, 10, "Successful", "", NOW, None, RequestsView(1, 2), None, ())
    runs = (run, replace(run, step_index=1), replace(run, attempt=2))

    newest = runs_newest_first(replace(ROLLOUT, analysis_runs=runs))

    assert [(each.attempt, each.step_index) for each in newest] == [(2, 0), (1, 1), (1, 0)]


def test_replicas_are_summed_over_revisions() -> None:
    revision = RevisionView("digits-00001", 1, "digits", 1, "stable", 2, 1, 0, 75, 75, "", NOW)
    draining = replace(revision, replicas_ready=1, replicas_wanted=0)
    replicas = replicas_of(replace(SERVICE, revisions=(revision, replace(revision, replicas_ready=2), draining)))

    assert (replicas.ready, replicas.wanted) == (3, 4)


@pytest.mark.parametrize(
    ("service", "sentence"),
    [
        pytest.param(
            SERVICE,
            "version 2 is being rolled out: step 2 of 3, 25 %",
            id="in a rollout: how far, not its reason again",
        ),
        pytest.param(
            replace(SERVICE, phase="Degraded", reason="0 of 1 replicas are ready"),
            "0 of 1 replicas are ready",
            id="else why",
        ),
        pytest.param(
            replace(
                SERVICE,
                phase="Ready",
                reason="a serves; its alias is refused",
                waits=Wait("AliasRefused", "its alias is refused", None, "it moves", NOW),
            ),
            "a serves",
            id="without what it waits for, which is told beside it",
        ),
    ],
)
def test_the_headline(service: ServiceView, sentence: str) -> None:
    assert headline_of(service) == sentence
