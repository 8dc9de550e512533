"""Live updates of the pages of services and rollouts."""

import time
from collections.abc import Hashable
from dataclasses import replace
from functools import partial

from django.http import HttpRequest
from django.utils import timezone

from accounts.auth.permissions import page_token
from accounts.domain.scopes import Scope
from deployments.reconcile.participants import traffic
from deployments.selectors import change_marks, rollout_of_service, service_detail
from deployments.web.pages import detail_page, list_page
from deployments.web.rollouts.page import rollout_page
from deployments.web.services.filter import parse_filter
from events.services.live_feed import Marks, Topic
from events.web.live_updates import Source, anywhere, of_service, page_of_token, page_or_none, streamed

SOURCE = Source(change_marks, Scope.READ)


def with_traffic(marks: Marks) -> Hashable:
    """Return a mark for all services that is another one also when their traffic was looked up again."""
    return marks.everything, _traffic_tick()


def _traffic_tick() -> int:
    return int(time.monotonic() / traffic.EVERY.total_seconds())


@streamed(SOURCE, anywhere)
def service_list_stream(request: HttpRequest) -> Topic:
    """Stream what changes in the list of services."""
    token = page_token(request)
    shown = parse_filter(request.GET.dict())
    load = partial(page_of_token, token.pk, partial(list_page, shown=shown))
    return Topic(key=("services", token.pk, shown), mark=with_traffic, load=load)


@streamed(SOURCE, of_service)
def service_stream(_request: HttpRequest, namespace: str, name: str) -> Topic:
    """Stream what changes on a service's page, its error budgets with its traffic; raises NotFound."""
    service = service_detail(namespace=namespace, name=name, now=timezone.now())
    topic = Topic.of_row(service.id, partial(page_or_none, partial(detail_page, namespace, name)), key=service.id)
    if not service.objectives:
        return topic
    # A key of its own: a page that was opened before the service had objectives does not decide for this one.
    return replace(topic, key=(service.id, "objectives"), mark=lambda marks: (topic.mark(marks), _traffic_tick()))


@streamed(SOURCE, of_service)
def rollout_stream(_request: HttpRequest, namespace: str, name: str, rollout_id: int) -> Topic:
    """Stream what changes on a rollout's page; raises NotFound."""
    row = rollout_of_service(namespace=namespace, name=name, rollout_id=rollout_id)
    load = partial(page_or_none, partial(rollout_page, namespace, name, rollout_id))
    return Topic.of_row(row.service_id, load, key=("rollout", row.pk))
