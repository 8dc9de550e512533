"""Rollout page as a value, like `pages` for services; suited to stay open on a wall display."""

from django.utils import timezone

from deployments.domain.phases import Phase
from deployments.selectors import (
    AnalysisRunView,
    RolloutView,
    label_habits_fixed,
    rollout_of_service,
    rollout_policy,
    rollout_siblings,
    rollout_views,
    service_detail,
)
from deployments.web.presentation import (
    actions_of,
    background_of,
    current_run_of,
    earlier_runs_of,
    is_copying,
    is_preview,
    progress_of,
    subject_of,
)
from deployments.web.rollouts.comparison_panel import comparison_of
from deployments.web.rollouts.detectable_effects import asks_labels, foreseen_of
from deployments.web.rollouts.timeline import stations_of
from events.selectors import events_newest
from events.web.live_updates import Page

EVENTS_SHOWN = 30
SIBLINGS_SHOWN = 8


def rollout_page(namespace: str, name: str, rollout_id: int) -> Page:
    """Return the page of one rollout of a service, in progress or over; raises NotFound."""
    rollout = rollout_views(
        [rollout_of_service(namespace=namespace, name=name, rollout_id=rollout_id)], now=timezone.now()
    )[0]
    service = service_detail(namespace=namespace, name=name, now=timezone.now())
    is_newest = service.rollout is not None and service.rollout.id == rollout.id
    run = current_run_of(rollout)
    return Page(
        template="deployments/rollout_detail.html",
        fragments=(
            "deployments/_rollout_header.html",
            "deployments/_rollout_why.html",
            "deployments/_rollout_steps.html",
            "deployments/_approvals.html",
            "deployments/_questions.html",
            "deployments/_rollout_traffic.html",
            "deployments/_rollout_evidence.html",
            "deployments/_rollout_comparison.html",
            "deployments/_rollout_siblings.html",
            "deployments/_events.html",
        ),
        cursor=service.changes,
        context={
            "service": service,
            "rollout": rollout,
            "actions_on": "rollout",
            "actions": actions_of(service) if is_newest else (),
            "progress": progress_of(rollout),
            "stations": stations_of(rollout),
            "is_copying": is_copying(rollout),
            "is_preview": is_preview(rollout),
            "subject": subject_of(rollout),
            "current_run": run,
            "background_run": background_of(rollout),
            "foreseen": () if run is None else _foreseen(rollout, run),
            "earlier_runs": earlier_runs_of(rollout),
            "comparison": comparison_of(rollout),
            "siblings": rollout_siblings(service_id=service.id, limit=SIBLINGS_SHOWN),
            "events": events_newest(service_id=service.id, rollout_id=rollout.id, limit=EVENTS_SHOWN),
        },
    )


def _foreseen(rollout: RolloutView, run: AnalysisRunView) -> tuple[str, ...]:
    if Phase(rollout.phase).is_finished:
        return ()
    policy = rollout_policy(rollout_id=rollout.id)
    if run.step_index is None or not asks_labels(run, policy):
        return foreseen_of(run, policy)
    return foreseen_of(run, policy, label_habits_fixed(rollout_id=rollout.id, step_index=run.step_index))
