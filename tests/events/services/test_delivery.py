import hashlib
import hmac
import ipaddress
import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from events.models import Webhook, WebhookDelivery
from events.services import delivery as deliveries
from events.services.delivery import (
    RETRY_AFTER,
    Notice,
    Try,
    deliveries_due,
    deliveries_forget,
    deliveries_queue,
    try_begin,
    try_end,
)
from events.tasks import deliver
from tests import scenes
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
pytestmark = pytest.mark.django_db
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


class Receiver:
    """An HTTP server that notes what it is posted and answers as told."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status, self.location = 200, ""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers), body))
                self.send_response(receiver.status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.end_headers()
                self.wfile.write(b"thanks" + b"x" * 5000)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self.server.server_address[1]}/hook"


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.EGRESS_ALLOWED_NETWORKS = (*LOOPBACK, ipaddress.ip_network("::1/128"))
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield receiver
    receiver.server.shutdown()
    thread.join()
    receiver.server.server_close()


def hook(admin: APIClient, url: str, *events: str) -> dict[str, Any]:
    answer = admin.post("/api/v1/webhooks", {"url": url, "events": events or ["ServiceCreated"]})
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def log(admin: APIClient, made: dict[str, Any]) -> list[dict[str, Any]]:
    return list(admin.get(f"/api/v1/webhooks/{made['id']}/deliveries").json()["results"])


def test_an_event_is_posted_with_a_signature_that_its_receiver_can_check(
    api: Api, platform: Platform, receiver: Receiver
) -> None:
    admin = api(Scope.ADMIN)
    made = hook(admin, receiver.url, "ServiceCreated")
    platform.version(1)
    platform.apply(policy=None)
    (queued,) = WebhookDelivery.objects.all()
    WebhookDelivery.objects.update(next_try_at=timezone.now())
    deliver(queued.pk)
    ((headers, body),) = receiver.got
    moment, signature = (part.split("=", 1)[1] for part in headers["Fairlead-Signature"].split(","))
    expected = hmac.new(made["secret"].encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signature, expected)
    assert abs(timezone.now().timestamp() - int(moment)) < 300
    told = json.loads(body)
    assert (told["id"], told["event"], told["service"], told["seq"]) == (
        queued.pk,
        "ServiceCreated",
        "default/digits",
        1,
    )
    assert headers["Fairlead-Event"] == "ServiceCreated"
    (shown,) = log(admin, made)
    assert (shown["status"], shown["tries"], shown["answer_status"]) == ("DELIVERED", 1, 200)
    assert shown["answer"].startswith("thanks")
    assert len(shown["answer"]) == 1000
    deliver(queued.pk)
    assert len(receiver.got) == 1


def test_the_test_call_is_posted_and_logged(api: Api, receiver: Receiver) -> None:
    admin = api(Scope.ADMIN)
    made = hook(admin, receiver.url)
    delivery = admin.post(f"/api/v1/webhooks/{made['id']}/test").json()
    assert (delivery["status"], delivery["event"]) == ("PENDING", "Test")
    deliver(delivery["id"])
    assert json.loads(receiver.got[0][1])["message"] == "alice (token alice-admin) tests this webhook"
    assert log(admin, made)[0]["status"] == "DELIVERED"


def queued(of: Webhook, now: datetime, event: str = "RolloutHealthy") -> WebhookDelivery:
    """Return the delivery of an event of a service that happened just now."""
    about = {"service": "default/digits", "seq": 1, "revision": None, "rollout": None}
    deliveries_queue([Notice(event, now, "it happened", about, (Owned.NAMESPACE, "default"))])
    return WebhookDelivery.objects.filter(webhook=of).latest("pk")


@pytest.mark.parametrize("status", [500, 404, 302])
def test_an_answer_that_is_no_success_is_tried_again_later(receiver: Receiver, status: int) -> None:
    receiver.status, receiver.location = status, receiver.url if status == 302 else ""
    delivery = queued(scenes.webhook(url=receiver.url).webhook, timezone.now())
    before = timezone.now()
    deliver(delivery.pk)
    row = WebhookDelivery.objects.get()
    assert (row.status, row.tries, row.answer_status, len(receiver.got)) == ("PENDING", 1, status, 1)
    assert row.next_try_at >= before + RETRY_AFTER[0]
    deliver(delivery.pk)
    assert len(receiver.got) == 1, "not before its time"


def test_a_test_that_fails_is_over_at_once(api: Api, receiver: Receiver) -> None:
    receiver.status = 500
    admin = api(Scope.ADMIN)
    made = hook(admin, receiver.url)
    deliver(admin.post(f"/api/v1/webhooks/{made['id']}/test").json()["id"])
    (shown,) = log(admin, made)
    assert (shown["status"], shown["tries"], shown["answer_status"]) == ("FAILED", 1, 500)


def test_tries_come_later_each_time_and_end() -> None:
    now = timezone.now()
    delivery = queued(scenes.webhook().webhook, now)
    waits = []
    while (attempt := try_begin(delivery_id=delivery.pk, now=now)) is not None:
        assert try_begin(delivery_id=delivery.pk, now=now) is None, "one at a time"
        try_end(of=attempt, status=None, answer="nobody there", now=now)
        delivery.refresh_from_db()
        if delivery.status == "PENDING":
            waits.append(delivery.next_try_at - now)
        now = delivery.next_try_at
    assert waits == list(RETRY_AFTER)
    assert (delivery.status, delivery.tries, delivery.answer) == ("FAILED", len(RETRY_AFTER) + 1, "nobody there")
    assert deliveries_due(now=now + timedelta(days=1), limit=9) == []
    deliveries_forget(now=now + timedelta(days=13))
    assert WebhookDelivery.objects.count() == 1
    deliveries_forget(now=now + timedelta(days=14))
    assert WebhookDelivery.objects.count() == 0


def test_a_worker_that_died_is_followed_by_the_next_try_and_cannot_write_late() -> None:
    now = timezone.now()
    delivery = queued(scenes.webhook().webhook, now)
    dead = try_begin(delivery_id=delivery.pk, now=now)
    assert isinstance(dead, Try)
    later = now + deliveries.TRY_TAKES
    assert deliveries_due(now=later, limit=9) == [delivery.pk]
    alive = try_begin(delivery_id=delivery.pk, now=later)
    assert isinstance(alive, Try)
    try_end(of=dead, status=500, answer="late", now=later)
    try_end(of=alive, status=204, answer="", now=later)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.answer_status) == ("DELIVERED", 204)


def test_private_addresses_are_not_posted_to_unless_allowed(api: Api, receiver: Receiver, settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ()
    admin = api(Scope.ADMIN)
    made = hook(admin, receiver.url)
    deliver(admin.post(f"/api/v1/webhooks/{made['id']}/test").json()["id"])
    (shown,) = log(admin, made)
    assert (shown["status"], shown["answer_status"], receiver.got) == ("FAILED", None, [])
    assert "which is not a public address" in shown["answer"]
