"""The secret key is replaced: nobody is signed out, no secret is lost, and the key before it can be forgotten."""

from pathlib import Path

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import Identity
from accounts.selectors.audit_chain import audit_verify
from accounts.services import user_get_or_create
from accounts.services.audit_chain import audit_chain
from accounts.services.identities import REFRESH_TOKEN
from clusters.models import Cluster
from clusters.services import prometheus
from clusters.services.connection import opened, sealed
from common.encryption import seal, seal_bytes, unseal, unseal_bytes
from common.errors import Unavailable
from control_plane import key_rotation
from deployments.models import ComparisonRun
from deployments.reconcile.participants import comparison
from events.models import Webhook
from events.services.delivery import SECRET
from events.services.subscriptions import webhook_create
from feedback.models import Answer, DriftBlock
from feedback.reconcile.first_values import first_values, keep_first
from feedback.selectors.answers import answer_values, sealed_values
from integrations.clusters.base import Exchange, SecretKeyRef
from integrations.clusters.kubernetes.access import Credentials
from recordings.models import Recording
from recordings.reconcile import payload_files
from sealed_secrets.selectors import values_of
from sealed_secrets.services import secret_create
from tests.deployments._support.platform import Platform
from tests.scenes import access_key

CREDENTIALS = Credentials(server="https://10.0.0.1", token="abc")
EXCHANGE = Exchange("1", "digits-00001", "1", 0.0, {"inputs": []}, {"outputs": []})
NEW_KEY = "n" * 40


class Stored:
    """One of everything that is kept sealed or signed."""

    def __init__(self, platform: Platform) -> None:
        now = timezone.now()
        platform.live()
        platform.version(2)
        rollout = platform.start()
        created = webhook_create(
            url="https://ci.example/hook", events=["RolloutHealthy"], description="", actor="a", now=now
        )
        self.secret, self.webhook_id = created.secret, created.webhook.pk
        Cluster.objects.update(credentials=sealed(CREDENTIALS), prometheus_token=seal("p", purpose=prometheus.PURPOSE))
        waiting = seal_bytes(b"halves", purpose=comparison.PURPOSE)
        place = {"rollout": rollout, "attempt": 1, "step_index": 0}
        ComparisonRun.objects.create(**place, started_at=now, waiting=waiting)
        self.recording = Recording.objects.create(
            service=rollout.service,
            consent="yes",
            share_percent=100,
            max_requests=10,
            max_bytes=10_000,
            created_at=now,
            expires_at=now,
            ended_at=now,
        )
        for _ in range(2):
            self.recording.bytes = payload_files.append(self.recording.pk, [EXCHANGE], at=self.recording.bytes)
        self.recording.save()
        Answer.objects.create(
            service=rollout.service,
            request_id="1",
            revision="digits-00001",
            version=1,
            at=now,
            sealed=sealed_values(b'{"outputs": {}, "inputs": {}}'),
            bytes=300,
        )
        block = DriftBlock(service=rollout.service, began_at=now, stable="digits-00001")
        keep_first(block, {"class": ["3"]})
        block.save()
        person = user_get_or_create(username="alice", now=now)
        Identity.objects.create(
            user=person, issuer="https://a.example", subject="1", sealed_refresh_token=seal("r", purpose=REFRESH_TOKEN)
        )
        access_key()
        secret_create(namespace="default", name="hub", values={"token": "t"}, actor="a", now=now)
        audit_chain(now=now)
        self.session = SessionStore()
        self.session["token"] = 7
        self.session.save()

    def is_all_there(self) -> bool:
        """Return whether everything is read as it was written; raises Unavailable where it cannot be."""
        webhook = Webhook.objects.get(pk=self.webhook_id)
        halves = unseal_bytes(bytes(ComparisonRun.objects.get().waiting), purpose=comparison.PURPOSE)
        exchanges = list(payload_files.read(self.recording.pk, length=self.recording.bytes))
        return (
            unseal(webhook.sealed_secret, purpose=SECRET) == self.secret
            and opened(Cluster.objects.get().credentials) == CREDENTIALS
            and unseal(Cluster.objects.get().prometheus_token, purpose=prometheus.PURPOSE) == "p"
            and unseal(Identity.objects.get().sealed_refresh_token, purpose=REFRESH_TOKEN) == "r"
            and answer_values(Answer.objects.get()) == {"outputs": {}, "inputs": {}}
            and first_values(DriftBlock.objects.get()) == {"class": ["3"]}
            and (halves, exchanges) == (b"halves", [EXCHANGE, EXCHANGE])
            and values_of(namespace="default", refs=[SecretKeyRef("hub", "token")]) == {"hub": {"token": "t"}}
            and audit_verify().broken == ""
            and self.is_signed_in()
        )

    def is_signed_in(self) -> bool:
        """Return whether the browser's session is still known."""
        return bool(SessionStore(self.session.session_key).get("token") == 7)


@pytest.fixture
def stored(platform: Platform, settings: Settings, tmp_path: Path) -> Stored:
    settings.RECORDINGS_FOLDER = tmp_path / "recordings"
    return Stored(platform)


def replace_the_key(settings: Settings) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], NEW_KEY


def test_all_is_read_while_the_earlier_key_is_named(stored: Stored, settings: Settings) -> None:
    replace_the_key(settings)
    assert stored.is_all_there()


def test_the_earlier_key_can_be_forgotten_after_all_was_sealed_anew(
    stored: Stored, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_the_key(settings)
    call_command("secrets_reseal")
    said = (
        "webhooks 1, sign-ins 1, kubeconfigs 1, tokens for Prometheus 1, signing keys 1, audit signing keys 1, "
        "secrets of services 1, comparisons 1, kept answers 1, first values of drift 1, recordings 1, sessions 1\n"
    )
    assert capsys.readouterr().out == said
    settings.SECRET_KEY_FALLBACKS = []
    assert stored.is_all_there()
    call_command("secrets_reseal")
    assert capsys.readouterr().out == said.replace(" 1", " 0")


def test_a_key_forgotten_too_early_is_told_of_each_secret_that_needs_it(stored: Stored, settings: Settings) -> None:
    settings.SECRET_KEY = NEW_KEY
    assert not stored.is_signed_in()
    with pytest.raises(CommandError, match=r"keep the earlier secret key.*webhooks: webhook \d+: .*FALLBACKS"):
        call_command("secrets_reseal")
    with pytest.raises(Unavailable):
        stored.is_all_there()


def test_many_kept_answers_are_sealed_in_batches_and_those_that_cannot_be_are_one_sentence(
    stored: Stored, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_rotation, "_BATCH", 2)
    (row,) = Answer.objects.values("service_id", "revision", "version", "at", "sealed", "bytes")
    Answer.objects.bulk_create(Answer(request_id=f"r{number}", **row) for number in range(4))
    Answer.objects.filter(request_id__in=["r1", "r3"]).update(sealed=b"from another installation")
    replace_the_key(settings)
    (done,) = (each for each in key_rotation.reseal_everything(is_stopped=True) if each.what == "kept answers")
    assert (done.changed, [each.split(" cannot")[0] for each in done.left]) == (3, ["2 kept answers: the kept answers"])
    settings.SECRET_KEY_FALLBACKS = []
    readable = Answer.objects.exclude(request_id__in=["r1", "r3"])
    assert [answer_values(each) for each in readable] == [{"outputs": {}, "inputs": {}}] * 3


def test_a_recording_under_way_is_left_until_it_ended_or_no_worker_runs(stored: Stored, settings: Settings) -> None:
    Recording.objects.update(ended_at=None)
    replace_the_key(settings)
    with pytest.raises(CommandError, match=r"recordings: recording \d+: it is under way; run this again"):
        call_command("secrets_reseal")
    call_command("secrets_reseal", stopped=True)
    settings.SECRET_KEY_FALLBACKS = []
    assert stored.is_all_there()
