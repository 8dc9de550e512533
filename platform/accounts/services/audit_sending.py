"""Sending of audit entries to the sinks of the settings: syslog and a webhook."""

import ipaddress
import json
import socket
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import httpx
from django.conf import settings

from accounts.domain.audit_sinks import SinkName, Transport, shortened, syslog_message
from accounts.services.audit_sinks import sink_advance, sink_batch, sink_claim, sink_fail, sink_release
from common.errors import Unavailable
from integrations import syslog
from integrations.outbound import post, signature_of
from serving_runtime.shared.egress import GUARDED, Network

_TIMEOUT_S = 10.0
_MAX_ENTRY_BYTES = 500_000
"""Proxies before webhooks refuse bodies of more than 1 MiB, and one entry can have two bodies of requests."""
_TURN = timedelta(seconds=10)
"""How long one turn begins further batches; the next turn follows within seconds. With the last batch's time-out a turn
takes 20 s at most, so that a slow sink does not keep a thread of the worker from other tasks."""
_ANYWHERE: tuple[Network, ...] = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"), *GUARDED)
"""The operator chose the address, not a caller."""

Line = dict[str, object]


def audit_send(*, sink: SinkName, clock: Callable[[], datetime]) -> None:
    """Send what the sink has not taken yet, for 20 s at most; nothing where it is not due."""
    began = clock()
    claim = sink_claim(sink=sink, now=began)
    while claim is not None:
        lines = sink_batch(claim)
        if not lines:
            return sink_release(claim, now=clock())
        try:
            _SENDERS[sink](lines, clock())
        except Unavailable as error:
            return sink_fail(claim, error=error.message, now=clock())
        claim = sink_advance(claim, sent=lines, now=clock())
        if claim is not None and clock() - began > _TURN:
            return sink_release(claim, now=clock())
    return None


def _to_syslog(lines: Sequence[Line], _now: datetime) -> None:
    address = settings.AUDIT_SYSLOG
    if address is None:
        raise Unavailable("FAIRLEAD_AUDIT_SYSLOG is not set here")
    messages = [syslog_message(line, hostname=socket.gethostname()) for line in lines]
    if address.transport is Transport.UDP:
        syslog.send_datagrams(address.host, address.port, messages, timeout_s=_TIMEOUT_S)
        return
    try:
        tls = syslog.context(settings.AUDIT_SYSLOG_CA) if address.transport is Transport.TLS else None
    except (ValueError, OSError) as error:
        raise Unavailable(f"FAIRLEAD_AUDIT_SYSLOG_CA cannot be read: {error}") from error
    syslog.send_stream(address.host, address.port, messages, tls=tls, timeout_s=_TIMEOUT_S)


def _to_webhook(lines: Sequence[Line], now: datetime) -> None:
    first, last = lines[0]["position"], lines[-1]["position"]
    entries = [shortened(line, _MAX_ENTRY_BYTES) for line in lines]
    body = json.dumps({"event": _EVENT, "at": now.isoformat(), "entries": entries}).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Fairlead-Webhook/1",
        "Fairlead-Event": _EVENT,
        "Fairlead-Delivery": f"{first}-{last}",
        "Fairlead-Signature": signature_of(settings.AUDIT_WEBHOOK_SECRET, body, now),
    }
    try:
        status, answer = post(settings.AUDIT_WEBHOOK, body, headers, allowed=_ANYWHERE, timeout_s=_TIMEOUT_S)
    except Unavailable as error:  # a path or query may be a secret, and the message goes onto a page
        whole = str(httpx.URL(settings.AUDIT_WEBHOOK))
        raise Unavailable(error.message.replace(whole, "the webhook")) from None
    if not 200 <= status < 300:
        raise Unavailable(f"the webhook answered with status {status}: {answer[:200]}")


_EVENT = "AuditEntries"
_SENDERS: dict[SinkName, Callable[[Sequence[Line], datetime], None]] = {
    SinkName.SYSLOG: _to_syslog,
    SinkName.WEBHOOK: _to_webhook,
}
