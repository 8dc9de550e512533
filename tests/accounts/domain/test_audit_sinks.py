"""Addresses and messages of syslog."""

import json
import re
from datetime import timedelta

import pytest

from accounts.domain.audit_sinks import SyslogAddress, Transport, retry_after, syslog_message
from common.errors import InvalidInput

ENTRY = {
    "id": 7,
    "at": "2026-01-01T00:00:00.000001+00:00",
    "actor": "älice (token ci)\n",
    "action": "model.create",
    "target": "models/m",
    "detail": {},
    "before": None,
    "after": {"name": "m"},
    "request_id": "r",
    "position": 3,
    "linked_at": "2026-01-01T00:00:05.000000+00:00",
    "hash": "0" * 64,
}
RFC_5424 = re.compile(
    r"<(?P<pri>[0-9]{1,3})>1 (?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z) (?P<host>[\x21-\x7e]{1,255}) "
    r"(?P<app>[\x21-\x7e]{1,48}) (?P<proc>[\x21-\x7e]{1,128}) (?P<id>[\x21-\x7e]{1,32}) "
    r'\[meta sequenceId="(?P<seq>\d+)"\] '
    r"(?P<message>[\x20-\x7e]*)"
)


def test_a_message_is_rfc_5424_and_has_the_whole_entry_in_a_line() -> None:
    match = RFC_5424.fullmatch(syslog_message(ENTRY, hostname="web 1").decode("ascii"))
    assert match is not None
    assert match.group("pri", "at", "host", "app", "proc", "id", "seq") == (
        *("109", "2026-01-01T00:00:00.000001Z", "web1", "fairlead", "-", "audit", "3"),
    )
    assert json.loads(match["message"]) == ENTRY


def test_a_long_entry_is_sent_without_its_fields_and_says_so() -> None:
    match = RFC_5424.fullmatch(syslog_message({**ENTRY, "after": {"x": "y" * 70_000}}, hostname="").decode("ascii"))
    assert match is not None
    sent = json.loads(match["message"])
    assert (sent["truncated"], sent["id"], match["host"]) == (True, 7, "-")
    assert "after" not in sent


def test_a_removed_entry_has_the_time_of_its_link_and_sequence_ids_begin_again() -> None:
    gone = {"id": 7, "position": 2**31, "linked_at": ENTRY["linked_at"], "hash": ENTRY["hash"]}
    match = RFC_5424.fullmatch(syslog_message(gone, hostname="web").decode("ascii"))
    assert match is not None
    assert match.group("at", "seq") == ("2026-01-01T00:00:05.000000Z", "1")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tls://siem.example.com", SyslogAddress(Transport.TLS, "siem.example.com", 6514)),
        ("udp://10.0.0.7:5514/", SyslogAddress(Transport.UDP, "10.0.0.7", 5514)),
        ("tcp://[fd00::1]", SyslogAddress(Transport.TCP, "fd00::1", 514)),
    ],
)
def test_an_address_has_a_transport_a_host_and_a_port(text: str, address: SyslogAddress) -> None:
    assert SyslogAddress.of(text) == address
    assert SyslogAddress.of(str(address)) == address


@pytest.mark.parametrize(
    "text", ["siem", "http://siem", "tls://", "tls://a:0", "tls://a:99999", "tls://u@a", "tls://a/b", "tcp://a b", ""]
)
def test_another_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected udp://, tcp:// or tls://"):
        SyslogAddress.of(text)


def test_tries_are_later_each_time_up_to_two_minutes() -> None:
    assert [retry_after(number).total_seconds() for number in (1, 2, 3)] == [5, 10, 20]
    assert retry_after(10**6) == timedelta(minutes=2)
