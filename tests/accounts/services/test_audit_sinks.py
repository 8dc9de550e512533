"""Sinks of the audit log, with servers that take entries, refuse them and are down."""

import hashlib
import hmac
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from pytest_django.fixtures import Settings

from accounts.domain.audit_sinks import SinkName, SyslogAddress
from accounts.models import AuditSink
from accounts.selectors.audit_sinks import sink_states
from accounts.services import audit_record, audit_sending
from accounts.services.audit_chain import audit_chain, audit_prune
from accounts.services.audit_sending import audit_send
from accounts.services.audit_sinks import sink_advance, sink_batch, sink_claim, sink_fail
from accounts.tasks import send_audit
from common.errors import Conflict
from control_plane.monitoring.collector import ControlPlaneCollector
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page

NOW = datetime(2026, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def record(first: int, last: int, **what: Any) -> None:
    for number in range(first, last + 1):
        audit_record(actor="a", action="model.create", target=f"models/m{number}", now=NOW, **what)
    audit_chain(now=NOW)


def send(sink: SinkName, now: datetime = NOW) -> AuditSink:
    audit_send(sink=sink, clock=lambda: now)
    return AuditSink.objects.get(name=sink)


class Syslog:
    """A syslog server over TCP or TLS; `cuts` is how many connections it ends after a few bytes."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.got: list[dict[str, Any]] = []
        self.cuts, self._tls = 0, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with suppress(OSError):
                    self._take(connection)

    def _take(self, plain: socket.socket) -> None:
        connection = plain if self._tls is None else self._tls.wrap_socket(plain, server_side=True)
        with connection:
            if self.cuts:
                self.cuts -= 1
                connection.recv(10)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
                return
            content = b""
            while piece := connection.recv(65536):
                content += piece
            while content:
                size, _, rest = content.partition(b" ")
                message, content = rest[: int(size)], rest[int(size) :]
                self.got.append(json.loads(message.partition(b"] ")[2]))


@pytest.fixture
def server(settings: Settings) -> Iterator[Syslog]:
    server = Syslog()
    settings.AUDIT_SYSLOG = SyslogAddress.of(f"tcp://127.0.0.1:{server.port}")
    yield server
    server.close()


def positions(server: Any) -> list[int]:
    return [entry["position"] for entry in server.got]


def test_entries_are_sent_in_order_once_they_are_chained(server: Syslog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.services.audit_sinks._AT_ONCE", 3)
    record(1, 7)
    audit_record(actor="a", action="model.create", target="models/later", now=NOW)  # not chained yet
    assert send(SinkName.SYSLOG).position == 7
    assert positions(server) == [1, 2, 3, 4, 5, 6, 7]
    assert [entry["target"] for entry in server.got][-1] == "models/m7"
    audit_chain(now=NOW)
    send_audit("syslog")
    assert positions(server)[7:] == [8]
    assert send(SinkName.SYSLOG).error == ""


def test_a_sink_that_was_down_gets_everything_later(server: Syslog, settings: Settings) -> None:
    up, settings.AUDIT_SYSLOG = settings.AUDIT_SYSLOG, SyslogAddress.of("tcp://127.0.0.1:1")
    record(1, 3)  # the audited action goes on
    down = send(SinkName.SYSLOG)
    assert (down.position, down.failures, down.next_try_at) == (0, 1, NOW + timedelta(seconds=5))
    assert "tcp://127.0.0.1:1 does not take messages" in down.error
    (state,) = sink_states(now=NOW + timedelta(minutes=1))
    assert (state.waiting, state.lag, state.error) == (3, timedelta(minutes=1), down.error)
    settings.AUDIT_SYSLOG = up
    assert send(SinkName.SYSLOG, NOW + timedelta(seconds=4)).position == 0  # not due yet
    record(4, 4)
    sent = send(SinkName.SYSLOG, NOW + timedelta(seconds=5))
    assert (sent.position, sent.failures, sent.error) == (4, 0, "")
    assert positions(server) == [1, 2, 3, 4]
    assert sink_states(now=NOW)[0].waiting == 0


def test_what_a_server_did_not_read_to_its_end_is_sent_again(server: Syslog) -> None:
    server.cuts = 1
    record(1, 3, detail={"x": "y" * 50_000})
    assert send(SinkName.SYSLOG).position == 0
    assert send(SinkName.SYSLOG, NOW + timedelta(minutes=1)).position == 3
    assert positions(server) == [1, 2, 3]


def test_one_worker_at_a_time_has_a_sink_and_a_slow_one_loses_it(server: Syslog) -> None:
    record(1, 2)
    slow = sink_claim(sink="syslog", now=NOW)
    assert slow is not None
    assert sink_claim(sink="syslog", now=NOW) is None
    assert send(SinkName.SYSLOG).position == 0
    assert send(SinkName.SYSLOG, NOW + timedelta(minutes=3)).position == 2
    assert sink_advance(slow, sent=[{"position": 1}], now=NOW) is None
    sink_fail(slow, error="too late", now=NOW)
    row = AuditSink.objects.get()
    assert (row.position, row.error) == (2, "")


def test_a_batch_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.services.audit_sinks._BYTES_AT_ONCE", 3000)
    record(1, 3, detail={"x": "y" * 2000})
    claim = sink_claim(sink="syslog", now=NOW)
    assert claim is not None
    assert len(sink_batch(claim)) == 1


def test_pruning_waits_for_the_sinks(server: Syslog) -> None:
    record(1, 3)
    later = NOW + timedelta(days=1)
    with pytest.raises(Conflict, match="the sink syslog has taken the audit log up to position 0, and pruning"):
        audit_prune(before=later, actor="ops", now=later)
    send(SinkName.SYSLOG)
    assert audit_prune(before=later, actor="ops", now=later) == 3
    assert sink_states(now=later)[0].waiting == 0


def test_datagrams(settings: Settings) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        settings.AUDIT_SYSLOG = SyslogAddress.of(f"udp://127.0.0.1:{server.getsockname()[1]}")
        record(1, 2, detail={"x": "y" * 70_000})
        assert send(SinkName.SYSLOG).position == 2
        received = [json.loads(server.recv(65536).partition(b"] ")[2]) for _ in "ab"]
    assert [(each["position"], each["truncated"]) for each in received] == [(1, True), (2, True)]
    record(3, 3)
    assert send(SinkName.SYSLOG, NOW + timedelta(seconds=1)).position in (2, 3)  # an error only comes with a later one


def certificate(folder: Path) -> tuple[ssl.SSLContext, str]:
    """Return the context of a server named 127.0.0.1 that signed its own certificate, and the PEM to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "syslog")])
    now = timezone.now()
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(private + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context, pem.decode()


def test_tls_trusts_the_authority_of_the_settings_alone(settings: Settings, tmp_path: Path) -> None:
    context, pem = certificate(tmp_path)
    server = Syslog(context)
    try:
        settings.AUDIT_SYSLOG = SyslogAddress.of(f"tls://127.0.0.1:{server.port}")
        record(1, 300)
        refused = send(SinkName.SYSLOG)
        assert refused.position == 0
        assert "CERTIFICATE_VERIFY_FAILED" in refused.error
        settings.AUDIT_SYSLOG_CA = pem
        assert send(SinkName.SYSLOG, NOW + timedelta(seconds=5)).position == 300
        assert positions(server) == list(range(1, 301))
        server.cuts = 1
        record(301, 301)
        assert send(SinkName.SYSLOG, NOW + timedelta(seconds=6)).position == 300
        assert send(SinkName.SYSLOG, NOW + timedelta(minutes=6)).position == 301
    finally:
        server.close()


@pytest.mark.parametrize("transport", ["tcp", "tls"])
def test_what_a_silent_server_may_not_have_read_is_sent_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    monkeypatch.setattr(audit_sending, "_TIMEOUT_S", 0.3)
    context, pem = certificate(tmp_path)
    settings.AUDIT_SYSLOG_CA = pem
    record(1, 2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings.AUDIT_SYSLOG = SyslogAddress.of(f"{transport}://127.0.0.1:{listener.getsockname()[1]}")
        over = threading.Event()

        def take() -> None:
            connection, _ = listener.accept()
            with context.wrap_socket(connection, server_side=True) if transport == "tls" else connection as opened:
                opened.recv(1)
                over.wait(20)

        threading.Thread(target=take, daemon=True).start()
        refused = send(SinkName.SYSLOG)
        over.set()
    assert refused.position == 0
    assert "did not take all messages" in refused.error


class Receiver:
    """A webhook's receiver that answers with `status`."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status = 204
        self.takes_s = 0.0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((dict(self.headers), body))
                if receiver.status == 204:
                    receiver.got += json.loads(body)["entries"]
                time.sleep(receiver.takes_s)
                self.send_response(receiver.status)
                with suppress(OSError):
                    self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    receiver = Receiver()
    settings.AUDIT_WEBHOOK = f"http://127.0.0.1:{receiver.server.server_port}/audit?key=k"
    settings.AUDIT_WEBHOOK_SECRET = "shared"
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def test_a_webhook_gets_signed_batches_and_again_what_it_refused(receiver: Receiver) -> None:
    record(1, 3)
    receiver.status = 503
    refused = send(SinkName.WEBHOOK)
    assert (refused.position, refused.error) == (0, "the webhook answered with status 503: ")
    receiver.status = 204
    assert send(SinkName.WEBHOOK, NOW + timedelta(seconds=5)).position == 3
    assert positions(receiver) == [1, 2, 3]
    headers, body = receiver.requests[-1]
    assert headers["Fairlead-Delivery"] == "1-3"
    moment, _, signature = headers["Fairlead-Signature"].removeprefix("t=").partition(",v1=")
    assert signature == hmac.new(b"shared", f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


def test_an_entry_that_proxies_would_refuse_goes_without_its_long_fields(receiver: Receiver) -> None:
    record(1, 1, after={"file": "x" * 2_000_000})
    record(2, 2, after={"file": "x" * 1000})
    assert send(SinkName.WEBHOOK).position == 2
    assert [(entry.get("truncated"), "after" in entry) for entry in receiver.got] == [(True, False), (None, True)]
    assert max(len(body) for _, body in receiver.requests) < 2**20


def test_a_slow_webhook_has_a_thread_for_a_short_turn_and_gets_the_rest_in_the_next(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.services.audit_sinks._AT_ONCE", 2)
    monkeypatch.setattr(audit_sending, "_TURN", timedelta(seconds=0.2))
    receiver.takes_s = 0.15
    record(1, 9)
    turns = 0
    while positions(receiver)[-1:] != [9]:
        audit_send(sink=SinkName.WEBHOOK, clock=timezone.now)
        turns += 1
    assert turns >= 3  # of five batches two begin within a turn
    assert positions(receiver) == list(range(1, 10))
    assert AuditSink.objects.get().position == 9


def test_what_a_webhook_answers_too_late_it_gets_again(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_sending, "_TIMEOUT_S", 0.2)
    receiver.takes_s = 0.5
    record(1, 3)
    late = send(SinkName.WEBHOOK)
    assert (late.position, late.error) == (0, "the webhook did not answer within 0.2 s")
    receiver.takes_s = 0.0
    monkeypatch.setattr(audit_sending, "_TIMEOUT_S", 10)
    assert send(SinkName.WEBHOOK, NOW + timedelta(seconds=5)).position == 3
    assert positions(receiver) == [1, 2, 3, 1, 2, 3]


def test_the_address_of_a_webhook_that_is_down_is_not_shown(settings: Settings) -> None:
    settings.AUDIT_WEBHOOK = "http://127.0.0.1:1/audit/secret-path?key=k"
    settings.AUDIT_WEBHOOK_SECRET = "shared"
    record(1, 1)
    error = send(SinkName.WEBHOOK).error
    assert "the webhook did not answer" in error
    assert not any(part in error for part in ("secret-path", "key=k"))


def test_sinks_go_on_without_each_other_and_are_shown(receiver: Receiver, settings: Settings, browser: Browser) -> None:
    client = browser()
    settings.AUDIT_SYSLOG = SyslogAddress.of("tcp://127.0.0.1:1")
    record(1, 2)
    waiting = send(SinkName.WEBHOOK).position
    assert send(SinkName.SYSLOG).position == 0
    assert positions(receiver) == list(range(1, waiting + 1))
    shown = page(client, "/audit/")
    assert len(marked(shown, "audit-sink")) == 2
    assert "does not take messages" in shown
    assert "key=k" not in shown
    registry = CollectorRegistry()
    registry.register(ControlPlaneCollector())
    metrics = generate_latest(registry).decode()
    assert 'fairlead_audit_sink_waiting_entries{sink="webhook"} 0.0' in metrics
    assert f'fairlead_audit_sink_waiting_entries{{sink="syslog"}} {float(waiting)}' in metrics
    assert 'fairlead_audit_sink_lag_seconds{sink="webhook"} 0.0' in metrics


def test_without_sinks_nothing_is_shown(browser: Browser) -> None:
    assert not marked(page(browser(), "/audit/"), "audit-sinks")
    assert sink_states(now=NOW) == []
