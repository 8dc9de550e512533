"""Webhooks that a step asks: a real HTTP server answers, the reconciler and the tasks do the rest."""

import hashlib
import hmac
import ipaddress
import json
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from accounts.services import teams
from clusters.domain.unseen import PLANNED
from deployments.domain.phases import Phase
from deployments.models import WebhookQuestion
from deployments.reconcile.participants.gates import question_begin, question_end, questions_due
from deployments.services import rollout_abort, rollout_promote, rollout_retry
from deployments.tasks import ask
from events.models import Webhook
from events.services.subscriptions import CreatedWebhook
from tests import scenes
from tests.deployments._support.fakes import ManualClock
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


class System:
    """A system outside: notes what it is asked and answers as told.

    Attributes:
        answer: the body; None ends the connection in the middle of the answer.
        hold: is waited for before the answer is given.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], bytes]] = []
        self.status: int = 200
        self.answer: bytes | None = b'{"verdict": "wait", "message": "tests run"}'
        self.hold = threading.Event()
        self.hold.set()
        system = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                system.asked.append((dict(self.headers), body))
                system.hold.wait(20)
                self.send_response(system.status)
                said = system.answer
                self.send_header("Content-Length", str(100 if said is None else len(said)))
                self.end_headers()
                if said is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                else:
                    self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self.server.server_address[1]}/confirm"

    def says(self, verdict: str, message: str = "") -> None:
        self.answer = json.dumps({"verdict": verdict, "message": message}).encode()


@pytest.fixture
def system(settings: Settings) -> Iterator[System]:
    settings.EGRESS_ALLOWED_NETWORKS = LOOPBACK
    system = System()
    thread = threading.Thread(target=system.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield system
    system.hold.set()
    system.server.shutdown()
    thread.join()
    system.server.server_close()


@pytest.fixture
def platform(db: None) -> Platform:
    """Return a platform whose clock is that of the tasks."""
    return Platform(clock=ManualClock(timezone.now()))


def registered(system: System, **where: Any) -> CreatedWebhook:
    return scenes.webhook("ConfirmRollout", url=system.url, **where)


def waiting(platform: Platform, system: System, **webhook: str) -> None:
    """Bring a rollout to where it waits for the system."""
    platform.live()
    platform.version(2)
    webhooks = [{"name": "tests", "url": system.url, **webhook}]
    platform.policy(name="asking", steps=[{"weight": 10, "webhooks": webhooks}, {"weight": 50}])
    platform.start("2", "asking")
    platform.until(lambda: platform.rollout().reason_code == "WaitingForWebhook")


def ask_now(platform: Platform) -> None:
    """Ask what is due as the task would, with the platform's clock as the real one."""
    WebhookQuestion.objects.update(next_try_at=timezone.now())
    for question_id in questions_due(now=timezone.now(), limit=9):
        ask(question_id)
    platform.turn()


@pytest.mark.django_db
def test_a_system_is_asked_with_a_signature_and_its_go_lets_the_step_end(
    platform: Platform, system: System, api: Api
) -> None:
    hook = registered(system)
    waiting(platform, system)
    ask_now(platform)
    ((headers, body),) = system.asked
    moment, signature = (part.split("=", 1)[1] for part in headers["Fairlead-Signature"].split(","))
    expected = hmac.new(hook.secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signature, expected)
    told = json.loads(body)
    assert (told["event"], told["service"], told["webhook"], told["step"], told["steps"], told["weight"]) == (
        "ConfirmRollout",
        "default/digits",
        "tests",
        1,
        2,
        10,
    )
    assert told["to"] == {"revision": "digits-00002", "model": "digits", "version": 2, "digest": "sha256:digits-2"}
    assert set(told["evidence"]) == {"verdict", "message", "requests", "measurements"}
    assert "webhook tests says wait: tests run" in platform.rollout().reason_message
    shown = api(Scope.READ).get(f"/api/v1/rollouts/{platform.rollout().pk}").json()["webhooks"]
    assert [(each["name"], each["answer"], each["message"], each["tries"], each["is_open"]) for each in shown] == [
        ("tests", "wait", "tests run", 1, True)
    ]
    system.says("go", "all green")
    ask_now(platform)
    assert platform.rollout().step_index == 1
    ask_now(platform)
    assert len(system.asked) == 2, "who said go is asked no more"
    assert platform.events().count("RolloutWebhookAnswered") == 2


@pytest.mark.django_db
def test_a_no_ends_the_rollout_with_its_reason(platform: Platform, system: System) -> None:
    registered(system)
    waiting(platform, system)
    system.says("no", "3 of 90 tests failed")
    ask_now(platform)
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Degraded", "WebhookRefused")
    assert "webhook tests said no: 3 of 90 tests failed" in platform.rollout().reason_message
    platform.turn()
    assert platform.cluster.weights().get("digits-00002", 0) == 0


def says(status: int, answer: bytes | None) -> Callable[[System], None]:
    def tell(system: System) -> None:
        system.status, system.answer = status, answer

    return tell


def goes(system: System) -> None:
    system.server.shutdown()
    system.server.server_close()
    system.server.serve_forever = lambda **_: None  # type: ignore[method-assign]
    system.server.shutdown = lambda: None  # type: ignore[method-assign]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        pytest.param(says(500, b'{"verdict": "no"}'), "it answered 500, not 200", id="500"),
        pytest.param(says(200, b"thanks"), "it did not answer {", id="no JSON"),
        pytest.param(says(200, b'{"verdict":"go","message":"' + b"x" * 2000 + b'"}'), "1000 bytes", id="too long"),
        pytest.param(says(200, None), "did not answer", id="the connection breaks off"),
        pytest.param(goes, "did not answer", id="nobody there"),
        pytest.param(lambda system: system.hold.clear(), "did not answer", id="too slow"),
    ],
)
def test_an_outage_or_a_wrong_answer_neither_promotes_nor_fails(
    platform: Platform, system: System, trouble: Callable[[System], None], why: str
) -> None:
    registered(system)
    waiting(platform, system, timeout="300ms" if why == "did not answer" else "10s")
    trouble(system)
    for _ in range(2):
        ask_now(platform)
    rollout = platform.rollout()
    assert (rollout.phase, rollout.step_index, rollout.reason_code) == ("Progressing", 0, "WaitingForWebhook")
    assert "webhook tests gave no answer that counts" in rollout.reason_message
    assert why in rollout.reason_message
    assert WebhookQuestion.objects.get().tries == 2


@pytest.mark.django_db
def test_without_a_registered_webhook_nobody_is_asked_and_the_sentence_says_what_to_do(
    platform: Platform, system: System
) -> None:
    waiting(platform, system)
    ask_now(platform)
    assert system.asked == []
    assert f"fairlead webhooks create {system.url} --event ConfirmRollout" in platform.rollout().reason_message
    scenes.webhook("RolloutHealthy", url=system.url)
    disabled = registered(system).webhook
    Webhook.objects.filter(pk=disabled.pk).update(enabled=False)
    ask_now(platform)
    assert system.asked == [], "not one that is disabled, nor one that is told of events alone"


@pytest.mark.django_db
def test_a_teams_own_webhook_signs_and_another_teams_does_not(platform: Platform, system: System) -> None:
    now = timezone.now()
    for team in ("red", "blue"):
        teams.team_create(name=team, actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    registered(system, team="blue")
    waiting(platform, system)
    ask_now(platform)
    assert system.asked == []
    registered(system)
    mine = registered(system, team="red")
    ask_now(platform)
    ((headers, body),) = system.asked
    moment, signature = (part.split("=", 1)[1] for part in headers["Fairlead-Signature"].split(","))
    assert signature == hmac.new(mine.secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()


@pytest.mark.django_db
def test_what_is_secret_in_the_registered_address_is_used_and_never_shown(platform: Platform, system: System) -> None:
    scenes.webhook("ConfirmRollout", url=f"{system.url}?token=hush")
    waiting(platform, system)
    ask_now(platform)
    assert len(system.asked) == 1
    system.hold.clear()
    goes(system)
    ask_now(platform)
    assert "did not answer" in platform.rollout().reason_message
    assert "hush" not in platform.rollout().reason_message


@pytest.mark.django_db
def test_private_addresses_are_not_asked_unless_allowed(platform: Platform, system: System, settings: Settings) -> None:
    settings.EGRESS_ALLOWED_NETWORKS = ()
    registered(system)
    waiting(platform, system)
    ask_now(platform)
    assert system.asked == []
    assert "which is not a public address" in platform.rollout().reason_message


@pytest.mark.django_db
def test_undecided_at_its_deadline_a_person_decides_and_time_that_nobody_saw_does_not_count(
    platform: Platform, system: System
) -> None:
    registered(system)
    waiting(platform, system, deadline="10m")
    deadline = WebhookQuestion.objects.get().deadline_at
    platform.turn(seconds=7200)
    assert platform.rollout().reason_code == "WaitingForWebhook", "the control plane was off"
    assert WebhookQuestion.objects.get().deadline_at - deadline == timedelta(seconds=7200) - PLANNED
    for _ in range(16):
        platform.turn(seconds=40)
    rollout = platform.rollout()
    assert (rollout.phase, rollout.reason_code) == ("Paused", "PausedByWebhook")
    assert questions_due(now=platform.clock(), limit=9) == []
    rollout_promote(rollout_id=rollout.pk, actor="alice", now=platform.clock())
    platform.until(lambda: platform.rollout().step_index == 1)
    assert WebhookQuestion.objects.get().message == "alice let the step pass without it"


@pytest.mark.django_db
def test_a_new_attempt_asks_anew_and_an_answer_to_the_old_one_does_not_count(
    platform: Platform, system: System
) -> None:
    registered(system)
    waiting(platform, system)
    first = WebhookQuestion.objects.get()
    late = question_begin(question_id=first.pk, now=platform.clock())
    assert late is not None
    pk = platform.rollout().pk
    rollout_abort(rollout_id=pk, actor="alice", now=platform.clock())
    question_end(of=late, status=200, answer='{"verdict": "go"}', now=platform.clock())
    first.refresh_from_db()
    assert (first.answer, first.decided_at) == ("wait", None)
    rollout_retry(rollout_id=pk, actor="alice", now=platform.clock())
    platform.until(lambda: platform.rollout().reason_code == "WaitingForWebhook")
    assert questions_due(now=platform.clock(), limit=9) == [WebhookQuestion.objects.latest("pk").pk]
    assert platform.rollout().step_index == 0


@pytest.mark.django_db
def test_a_worker_that_died_while_it_asked_is_followed_by_another_whose_answer_counts(
    platform: Platform, system: System
) -> None:
    registered(system)
    waiting(platform, system)
    pk, now = WebhookQuestion.objects.get().pk, platform.clock()
    dead = question_begin(question_id=pk, now=now)
    assert dead is not None
    assert question_begin(question_id=pk, now=now) is None, "one at a time"
    later = now + timedelta(seconds=90)
    assert questions_due(now=later, limit=9) == [pk]
    alive = question_begin(question_id=pk, now=later)
    assert alive is not None
    question_end(of=dead, status=200, answer='{"verdict": "no"}', now=later)
    question_end(of=alive, status=200, answer='{"verdict": "go"}', now=later)
    assert WebhookQuestion.objects.get().answer == "go"


@pytest.mark.django_db(transaction=True)
def test_two_workers_ask_once_at_a_time_and_nothing_is_locked_meanwhile(system: System) -> None:
    platform = Platform(clock=ManualClock(timezone.now()))
    registered(system)
    waiting(platform, system)
    WebhookQuestion.objects.update(next_try_at=timezone.now())
    pk = WebhookQuestion.objects.get().pk
    system.hold.clear()

    def work() -> None:
        try:
            ask(pk)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    deadline = threading.Event()
    for _ in range(1000):
        if system.asked:
            break
        deadline.wait(0.01)
    platform.turn()  # the reconciler does not wait for the answer
    assert platform.rollout().phase == Phase.PROGRESSING
    system.says("go")
    system.hold.set()
    for worker in workers:
        worker.join(20)
    assert len(system.asked) == 1
    platform.turn()
    assert platform.rollout().step_index == 1
