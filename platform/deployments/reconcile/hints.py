"""Hints that a service is due for a tick, or a step webhook for a call; the next sweep finds those of a lost hint."""

from collections.abc import Sequence

from jobs.services.hints import send_on_commit


def reconcile_soon(service_id: int) -> None:
    """Request a tick once the present transaction is committed."""
    send_on_commit("deployments.tasks.reconcile", service_id, "service")


def ask_soon(question_ids: Sequence[int]) -> None:
    """Request calls of step webhooks once the present transaction is committed."""
    for question_id in question_ids:
        send_on_commit("deployments.tasks.ask", question_id, "question")
