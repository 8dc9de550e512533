"""Page presentation beyond the API's values: a rollout's buttons with their texts, and sums. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

from deployments.domain.analysis.measurements.quality import PREFIX
from deployments.domain.analysis.verdict import Measurement, Verdict
from deployments.domain.phases import Phase, ServicePhase
from deployments.domain.policy import Strategy, Then
from deployments.domain.service_state.failures import NEVER_FITS
from deployments.views.shapes import AnalysisRunView, RolloutView, ServiceView, StepView
from deployments.views.traffic import Traffic
from deployments.web.services.sparklines import Spark, spark_of


@dataclass(frozen=True, slots=True)
class Action:
    """An action on a rollout that is possible now, and its confirmation."""

    verb: str
    label: str
    style: str
    question: str
    consequence: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """An earlier revision for a possible rollback, and its confirmation."""

    revision: str
    model_version: int
    question: str
    consequence: str
    made_at: datetime
    is_warm: bool


@dataclass(frozen=True, slots=True)
class Replicas:
    """Replicas of all revisions of a service together."""

    ready: int
    wanted: int


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One line of the list of services."""

    service: ServiceView
    replicas: Replicas
    progress: str
    traffic: Traffic
    spark: Spark
    slice: str


def service_row(service: ServiceView, traffic: Traffic) -> ServiceRow:
    """Return the list's row of `service`; a stopped one has no present figures."""
    is_stopped = service.phase == ServicePhase.STOPPED
    if is_stopped:
        traffic = replace(traffic, per_second=None, requests=0, error_percent=None, p99_ms=None)
    words = traffic_in_words(traffic, unseen="none now" if is_stopped else "not measured now")
    spark = spark_of(traffic.rates, f"Requests of the last half hour: {words}")
    return ServiceRow(service, replicas_of(service), progress_of(service.rollout), traffic, spark, slice_of(service))


def traffic_in_words(traffic: Traffic, unseen: str = "not measured now") -> str:
    """Return the least, the highest and the present request rate as text, or `unseen`."""
    seen = [rate for rate in traffic.rates if rate is not None]
    if not seen:
        return "not measured"
    now = unseen if traffic.per_second is None else f"{traffic.per_second:.3g} per second now"
    return f"{now}, between {min(seen):.3g} and {max(seen):.3g}"


def slice_of(service: ServiceView) -> str:
    """Return the GPU, or slice of one, of each replica of the live revision; empty for none."""
    stable = next((each for each in service.revisions if each.name == service.stable_revision), None)
    if stable is None or stable.placement is None:
        return ""
    return stable.placement.resource.removeprefix("nvidia.com/")


def headline_of(service: ServiceView) -> str:
    """Return the reason of the service's phase, without its wait; in a rollout only its progress."""
    rollout = service.rollout
    if service.phase != ServicePhase.PROGRESSING or rollout is None:
        reported = service.waits.evidence if service.waits is not None else ""
        return "" if reported == service.reason else service.reason.removesuffix(f"; {reported}")
    return f"version {rollout.to_version} is being rolled out: {progress_of(rollout).lower()}"


def never_fits_of(service: ServiceView) -> str:
    """Return what to do for a service whose model is too large for its pool, in two sentences; empty elsewhere."""
    for each in service.revisions:
        failure = each.last_failure
        if each.pool and each.is_failing and failure is not None and NEVER_FITS in failure.message:
            return (
                f"The model of {each.name} never fits into model pool {each.pool}. Raise memoryBudget of the pool, or "
                "apply the service's file without spec.predictor.pool."
            )
    return ""


def replicas_of(service: ServiceView) -> Replicas:
    """Return the sums over the service's revisions; draining replicas do not make up for missing ones."""
    return Replicas(
        ready=sum(min(revision.replicas_ready, revision.replicas_wanted) for revision in service.revisions),
        wanted=sum(revision.replicas_wanted for revision in service.revisions),
    )


def progress_of(rollout: RolloutView | None) -> str:
    """Return the position of a rollout, such as `Step 2 of 4, 25 %`; empty for one that is over, and for None."""
    if rollout is None or Phase(rollout.phase).is_finished:
        return ""
    if rollout.phase == Phase.PENDING:
        return "Not begun"
    if rollout.step_index >= len(rollout.steps):
        return "Last move, 100 %" if rollout.then != Then.END else "The end"
    if is_preview(rollout):
        return "Preview"
    return f"Step {rollout.step_index + 1} of {len(rollout.steps)}, {rollout.portion.short}"


def is_copying(rollout: RolloutView | None) -> bool:
    """Return whether the rollout's present step copies requests, whose answers no client gets."""
    step = None if rollout is None else _step_of(rollout)
    return step is not None and step.mirror > 0


def _step_of(rollout: RolloutView) -> StepView | None:
    return rollout.steps[rollout.step_index] if rollout.step_index < len(rollout.steps) else None


def is_preview(rollout: RolloutView | None) -> bool:
    """Return whether the rollout is on trial at its preview address, or would be; afterwards all traffic moves."""
    return rollout is not None and rollout.strategy == Strategy.BLUE_GREEN and rollout.step_index < len(rollout.steps)


def subject_of(rollout: RolloutView | None) -> str:
    """Return the name of the new revision while it is on trial."""
    return "shadow" if rollout is not None and rollout.strategy == Strategy.SHADOW else "canary"


def about_of(run: AnalysisRunView, rollout: RolloutView) -> str:
    """Return the subject of an analysis run, after `Analysis`."""
    if run.step_index is None:
        return "in the background"
    if rollout.strategy == Strategy.BLUE_GREEN:
        return "of the preview"
    portion = rollout.steps[run.step_index].portion
    if portion.mirror:
        return f"of {portion.short}"
    return f"of {portion.requests}" if portion.match else f"at {portion.short}"


def decides(measurement: Measurement, ended: object) -> str:
    """Return what decides a measurement, as the rest of a sentence after `Decision`.

    Args:
        ended: whether its analysis is over.
    """
    so_far = f"{measurement.evidence_percent:g}\N{NO-BREAK SPACE}% of clear"
    if measurement.verdict == Verdict.FAILED:
        return "failed: the evidence that the limit is broken is clear, and ends the rollout."
    if ended:
        return f"none; the evidence against it reached {so_far}."
    if measurement.verdict == Verdict.SUCCESSFUL:
        return f"within its limit; it would take clear evidence against it, which is at {so_far}."
    more = measurement.more_requests
    good = "more good requests" if not more else f"{more:,} more good request{'' if more == 1 else 's'} at least"
    if measurement.metric.startswith(PREFIX):
        good = "the labels that it needs"
    return f"it passes with {good}, and fails once the evidence against it is clear; that is at {so_far}."


def runs_newest_first(rollout: RolloutView | None) -> tuple[AnalysisRunView, ...]:
    """Return the rollout's analysis runs of steps, the one that counts now first."""
    runs = rollout.analysis_runs if rollout else ()
    of_steps = [(run.attempt, run.step_index, run) for run in runs if run.step_index is not None]
    return tuple(run for _, _, run in sorted(of_steps, key=lambda each: each[:2], reverse=True))


def current_run_of(rollout: RolloutView | None) -> AnalysisRunView | None:
    """Return the newest analysis run of a step in the present attempt; None where none has begun in it."""
    newest = next(iter(runs_newest_first(rollout)), None)
    return newest if rollout is not None and newest is not None and newest.attempt == rollout.attempt else None


def earlier_runs_of(rollout: RolloutView | None) -> tuple[AnalysisRunView, ...]:
    """Return the analysis runs of steps but the one that counts now, newest first; also those of earlier attempts."""
    runs = runs_newest_first(rollout)
    return runs if current_run_of(rollout) is None else runs[1:]


def background_of(rollout: RolloutView | None) -> AnalysisRunView | None:
    """Return the background run of the present attempt; None without one."""
    runs = rollout.analysis_runs if rollout else ()
    now = rollout.attempt if rollout else 0
    return next((run for run in runs if (run.attempt, run.step_index) == (now, None)), None)


def actions_of(service: ServiceView) -> tuple[Action, ...]:
    """Return the actions possible on the newest rollout of a service now; the services refuse all others."""
    rollout = service.rollout
    if rollout is None or service.phase in (ServicePhase.DELETING, ServicePhase.STOPPED):
        return ()
    phase = Phase(rollout.phase)
    if phase is Phase.PAUSED and not rollout.approvals.is_awaited:
        return (_promote(rollout), _abort(rollout))
    if not phase.is_finished:
        return (_abort(rollout),)
    can_retry = phase in (Phase.DEGRADED, Phase.ABORTED) and service.stable_revision == rollout.from_revision
    return (_retry(rollout),) if can_retry else ()


def rollback_to(revision: str, model_version: int, made_at: datetime, *, is_warm: bool) -> Rollback:
    """Return the rollback to `revision`; a warm one still runs."""
    when = "It still runs, so all requests move at once." if is_warm else "All requests move when it is ready again."
    question = f"Roll back to {revision} (version {model_version})?"
    return Rollback(revision, model_version, question, when, made_at, is_warm)


def _promote(rollout: RolloutView) -> Action:
    later = [step.portion for step in rollout.steps[rollout.step_index + 1 :]]
    asked = later[0].asked if later else "send all of the requests"
    question = f"{asked[0].upper()}{asked[1:]} to version {rollout.to_version}?"
    consequence = f"The rollout leaves its pause at {rollout.portion.short} and goes on."
    if is_copying(rollout):
        if later and not later[0].mirror:
            consequence = "So far clients have had no answer of it; from then on some have."
        elif not later and rollout.then == Then.END:
            question = f"End the trial of version {rollout.to_version}?"
        elif not later:
            consequence = "So far clients have had no answer of it; from then on they have no other."
    if is_preview(rollout):
        consequence = f"All requests move in one switch; {rollout.from_revision} is kept warm for the way back."
    return Action(verb="promote", label="Promote", style="primary", question=question, consequence=consequence)


def _abort(rollout: RolloutView) -> Action:
    consequence = f"All requests go back to version {rollout.from_version} ({rollout.from_revision}) at once."
    if is_copying(rollout):
        consequence = (
            f"Nothing is copied to version {rollout.to_version} any more; "
            f"version {rollout.from_version} ({rollout.from_revision}) goes on answering all clients."
        )
    if is_preview(rollout):
        consequence = (
            f"The preview address is closed; version {rollout.from_version} ({rollout.from_revision}) goes on "
            "answering all clients."
        )
    return Action(
        verb="abort",
        label="Abort",
        style="danger",
        question="Abort this rollout?",
        consequence=consequence,
    )


def _retry(rollout: RolloutView) -> Action:
    first = rollout.steps[0].portion.got if rollout.steps else "all of the requests"
    on = "on the preview address" if rollout.strategy == Strategy.BLUE_GREEN else f"and {first}"
    return Action(
        verb="retry",
        label="Retry",
        style="",
        question=f"Roll version {rollout.to_version} out again?",
        consequence=f"It starts over with a fresh analysis {on}.",
    )
