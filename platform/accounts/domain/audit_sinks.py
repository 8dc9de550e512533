"""Audit log sinks: the address of a syslog server, messages after RFC 5424, and times of retries."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from common.errors import InvalidInput

HELD_FOR = timedelta(minutes=2)
"""How long one worker has a sink for itself; longer than it takes to send what it reads at once."""
_FIRST_RETRY, _LAST_RETRY = timedelta(seconds=5), timedelta(minutes=2)
_FACILITY_LOG_AUDIT, _SEVERITY_NOTICE = 13, 5
_PRIORITY = 8 * _FACILITY_LOG_AUDIT + _SEVERITY_NOTICE
_MAX_MESSAGE_BYTES = 60_000
"""A UDP datagram has at most 65,507 bytes; many servers cut longer messages on other transports too."""
_LONG_FIELDS = ("detail", "before", "after")
_LAST_SEQUENCE_ID = 2**31 - 1


class SinkName(StrEnum):
    """Sinks, by their setting `FAIRLEAD_AUDIT_<name>`."""

    SYSLOG = "syslog"
    WEBHOOK = "webhook"


class Transport(StrEnum):
    """Transports of syslog: RFC 5426, RFC 6587 with octet counting, RFC 5425."""

    UDP = "udp"
    TCP = "tcp"
    TLS = "tls"


_PORTS = {Transport.UDP: 514, Transport.TCP: 514, Transport.TLS: 6514}


@dataclass(frozen=True, slots=True)
class SyslogAddress:
    """Where a syslog server listens."""

    transport: Transport
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.transport}://{host}:{self.port}"

    @classmethod
    def of(cls, text: str) -> "SyslogAddress":
        """Return the address written as `tls://HOST[:PORT]`; raises InvalidInput."""
        match = re.fullmatch(r"(udp|tcp|tls)://(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?/?", text)
        port = int(match[4] or _PORTS[Transport(match[1])]) if match else 0
        if match is None or not 0 < port < 65536:
            raise InvalidInput(
                f"the address is {text[:80]!r}; expected udp://, tcp:// or tls:// with HOST or HOST:PORT"
            )
        return cls(Transport(match[1]), match[2] or match[3], port)


def syslog_message(entry: Mapping[str, object], *, hostname: str) -> bytes:
    """Return an entry as a message after RFC 5424, without framing: a header, and the entry as ASCII JSON.

    An entry that is too long for many servers is sent without `detail`, `before` and `after`, and says `truncated`.
    """
    at = str(entry.get("at", entry["linked_at"])).replace("+00:00", "Z")
    sequence = (int(str(entry["position"])) - 1) % _LAST_SEQUENCE_ID + 1
    name = re.sub(r"[^\x21-\x7e]", "", hostname)[:255] or "-"
    head = f'<{_PRIORITY}>1 {at} {name} fairlead - audit [meta sequenceId="{sequence}"] '
    return (head + json.dumps(shortened(entry, _MAX_MESSAGE_BYTES - len(head)))).encode()


def shortened(entry: Mapping[str, object], max_bytes: int) -> Mapping[str, object]:
    """Return an exported entry, without its long fields and with `truncated` where its JSON has more bytes."""
    if len(json.dumps(entry)) <= max_bytes:
        return entry
    return {**{name: value for name, value in entry.items() if name not in _LONG_FIELDS}, "truncated": True}


def retry_after(failures: int) -> timedelta:
    """Return the time until the next try after so many failures in a row."""
    return min(_FIRST_RETRY * (1 << min(failures - 1, 10)), _LAST_RETRY)
