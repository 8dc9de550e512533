"""The exported audit log: verified by the command line alone, with every way to change the file found."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import models

from accounts.models import AuditEntry, AuditLink, AuditSigningKey
from accounts.selectors.audit_chain import public_keys
from accounts.selectors.audit_chain_export import audit_chain_export
from accounts.services import audit_record
from accounts.services.audit_chain import audit_chain, audit_prune
from common.errors import Conflict, Unavailable
from fairlead_cli.__main__ import main
from tests.accounts._support.pages import Browser

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MALLORY = Ed25519PrivateKey.from_private_bytes(b"m" * 32)
pytestmark = pytest.mark.django_db
Line = dict[str, Any]


def record(number: int, *, at: datetime = NOW) -> None:
    audit_record(
        actor="älice (token ci)\u2028", action="model.create", target=f"models/m{number}", now=at, after={"size": 1e22}
    )


def exported(now: datetime = NOW) -> list[Line]:
    return [json.loads(line) for line in b"".join(audit_chain_export(now=now)).splitlines()]


def two_runs() -> list[Line]:
    """Return the head, entries 1 to 3, their checkpoint, entries 4 and 5, and theirs."""
    for first in (0, 3):
        for number in range(first, first + 3 - first // 3):
            record(number)
        audit_chain(now=NOW)
    return exported()


def verify(lines: list[Line], folder: Path, *options: str) -> int:
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return main(["audit", "verify", str(file), *options])


def test_a_whole_file_verifies_without_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = two_runs()
    assert [set(line) == {"checkpoint"} for line in lines[1:]] == [False, False, False, True, False, False, True]
    assert verify(lines, tmp_path) == 0
    assert f"signed by the file's own key {public_keys()[0]}" in capsys.readouterr().out
    assert verify(lines, tmp_path, "--public-key", public_keys()[0], "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)["checked"] == 5


def changed(lines: list[Line]) -> None:
    lines[2]["actor"] = "mallory"


def more(lines: list[Line]) -> None:
    lines[2]["note"] = "by mallory"


def removed(lines: list[Line]) -> None:
    del lines[2]


def emptied(lines: list[Line]) -> None:
    for name in ("at", "actor", "action", "target", "detail", "before", "after", "request_id"):
        del lines[2][name]


def inserted(lines: list[Line]) -> None:
    lines.insert(3, {**lines[2], "id": 99})


def appended(lines: list[Line]) -> None:
    added = {**lines[6], "id": lines[6]["id"] + 1, "position": 6}
    lines.append({**added, "hash": hash_of(added, lines[6]["hash"])})


def reordered(lines: list[Line]) -> None:
    lines[1], lines[2] = {**lines[2], "position": 1}, {**lines[1], "position": 2}


def truncated(lines: list[Line]) -> None:
    del lines[5:]


def beheaded(lines: list[Line]) -> None:
    del lines[1:3]


def beheaded_as_if_pruned(lines: list[Line]) -> None:
    lines[0]["pruned"] = {**lines[4]["checkpoint"], "pruned": True}
    del lines[1:5]


def suffix_rewritten(lines: list[Line]) -> None:
    lines[5]["actor"] = "mallory"
    rehash(lines)


def suffix_rewritten_without_its_checkpoint(lines: list[Line]) -> None:
    del lines[7]
    suffix_rewritten(lines)


def rewritten_between_checkpoints(lines: list[Line]) -> None:
    lines[1]["actor"] = "mallory"
    rehash(lines)


def checkpoint_forged(lines: list[Line]) -> None:
    suffix_rewritten(lines)
    lines[7]["checkpoint"]["hash"] = lines[6]["hash"]


def checkpoint_moved(lines: list[Line]) -> None:
    lines[4], lines[7] = lines[7], lines[4]


def end_claimed_earlier(lines: list[Line]) -> None:
    lines[0].update(position=3, hash=lines[3]["hash"])
    truncated(lines)


def backdated(lines: list[Line]) -> None:
    lines[0]["at"] = "2025-01-01T00:00:00.000000+00:00"


def hash_of(line: Line, previous: str) -> str:
    fields = {name: line[name] for name in line.keys() - {"id", "position", "linked_at", "hash"}}
    content = {"position": line["position"], "entry": line["id"], "linked_at": line["linked_at"], "fields": fields}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(bytes.fromhex(previous) + text.encode()).hexdigest()


def rehash(lines: list[Line]) -> None:
    previous = "0" * 64
    for line in lines[1:]:
        if "id" in line:
            previous = line["hash"] = hash_of(line, previous)


def sign_as_mallory(lines: list[Line]) -> None:
    """Make the file again with another key, which cannot be found without knowing the installation's."""
    suffix_rewritten(lines)
    del lines[7], lines[4]
    lines[0].update(hash=lines[-1]["hash"], public_keys=[MALLORY.public_key().public_bytes_raw().hex()])
    del lines[0]["signature"]
    text = json.dumps(lines[0], sort_keys=True, separators=(",", ":"))
    lines[0]["signature"] = MALLORY.sign(text.encode()).hex()


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        pytest.param(changed, "entry {2} (position 2) was changed", id="changed"),
        pytest.param(more, "entry {2} (position 2) was changed", id="a field more"),
        pytest.param(removed, "the entries at positions 2 to 2 were removed, before entry {3}", id="removed"),
        pytest.param(emptied, "entry {2} (position 2) was removed", id="emptied"),
        pytest.param(inserted, "position 2 is there again, before entry 99", id="inserted"),
        pytest.param(appended, "the chain up to entry {6} (position 5) was rewritten", id="appended"),
        pytest.param(reordered, "entry {2} (position 1) was changed or moved", id="reordered"),
        pytest.param(truncated, "ends at entry {3} (position 3), position 5 was signed", id="end removed"),
        pytest.param(beheaded, "positions 1 to 2 were removed, before entry {3}", id="beginning removed"),
        pytest.param(beheaded_as_if_pruned, "its first line was changed", id="beginning removed as if pruned"),
        pytest.param(suffix_rewritten, "the chain up to entry {5} (position 5) was rewritten", id="suffix rewritten"),
        pytest.param(
            suffix_rewritten_without_its_checkpoint, "up to entry {5} (position 5) was rewritten", id="suffix, unsigned"
        ),
        pytest.param(rewritten_between_checkpoints, "up to entry {3} (position 3) was rewritten", id="rewritten"),
        pytest.param(checkpoint_forged, "the checkpoint at position 5 (entry {5}) is forged", id="checkpoint forged"),
        pytest.param(checkpoint_moved, "checkpoint at position 5 was moved", id="checkpoint moved"),
        pytest.param(end_claimed_earlier, "its first line was changed", id="end claimed earlier"),
        pytest.param(backdated, "its first line was changed", id="backdated"),
    ],
)
def test_a_change_of_the_file_is_found(
    attack: Callable[[list[Line]], None], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = two_runs()
    numbers = [0, *(line["id"] for line in lines if "id" in line)]
    attack(lines)
    assert verify(lines, tmp_path, "--public-key", public_keys()[0]) == 1
    expected = words.format(*numbers, numbers[-1] + 1)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "the audit log is broken: " in said
    assert expected in said


def test_a_file_signed_by_another_key_is_found_with_the_public_key_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = two_runs()
    sign_as_mallory(lines)
    assert verify(lines, tmp_path) == 0
    assert MALLORY.public_key().public_bytes_raw().hex() in capsys.readouterr().out
    assert verify(lines, tmp_path, "--public-key", public_keys()[0]) == 1
    assert "is signed by another key" in capsys.readouterr().err


def test_an_entry_that_was_inserted_late_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        record(number)
    row = AuditEntry.objects.order_by("pk").values()[1]
    models.QuerySet(AuditEntry).filter(pk=row["id"]).delete()
    audit_chain(now=NOW)
    AuditEntry(**row).save(force_insert=True)
    audit_chain(now=NOW + timedelta(hours=3))
    assert verify(exported(), tmp_path) == 1
    assert f"entry {row['id']} (position 3) was inserted among older entries" in capsys.readouterr().err


def test_a_file_that_begins_behind_a_pruning_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        record(number, at=NOW + timedelta(days=number))
    later = NOW + timedelta(days=9)
    assert audit_prune(before=NOW + timedelta(days=2), actor="ops", now=later) == 2
    audit_chain(now=later)
    lines = exported()
    assert verify(lines, tmp_path) == 0
    assert "3 entries are whole, 2 pruned" in capsys.readouterr().out
    lines[0]["pruned"] = None
    assert verify(lines, tmp_path) == 1


def test_a_broken_table_is_broken_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs()
    link = AuditLink.objects.get(position=2)
    AuditLink.objects.filter(position=2).update(entry=10**6)
    assert verify(exported(), tmp_path) == 1
    assert f"entry {10**6} (position 2) was removed" in capsys.readouterr().err
    assert link.entry != 10**6


@pytest.mark.parametrize(
    "content",
    [b"", b"[]\n", b"\xff\n", b"{}\n", b'{"id": 1, "id": 2}\n', b"[" * 5000, b'{"format": "fairlead-audit-1"}\n'],
)
def test_another_file_is_refused_in_one_sentence(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert main(["audit", "verify", str(tmp_path / "file")]) == 1
    assert "make one with `fairlead audit export`" in capsys.readouterr().err


def test_a_field_twice_a_cut_line_and_a_bad_key_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs()
    whole = b"".join(audit_chain_export(now=NOW))
    file = tmp_path / "log"
    for content in (whole[:-9], whole.replace(b'"actor"', b'"actor": "mallory", "actor"', 1)):
        file.write_bytes(content)
        assert main(["audit", "verify", str(file)]) == 1
        assert "is no JSON object with each field once" in capsys.readouterr().err
    assert main(["audit", "verify", str(file), "--public-key", "abc"]) == 1
    assert "'abc' is no public key" in capsys.readouterr().err
    assert main(["audit", "verify", str(tmp_path / "none")]) == 1
    assert main(["audit", "verify", "--public-key", "abc"]) == 1


def test_nothing_is_exported_before_something_is_chained_and_while_entries_are_pruned() -> None:
    with pytest.raises(Conflict, match="no entry of the audit log is chained yet"):
        audit_chain_export(now=NOW)
    two_runs()
    pieces = audit_chain_export(now=NOW)
    next(pieces)
    audit_prune(before=NOW + timedelta(days=1), actor="ops", now=NOW + timedelta(days=1))
    with pytest.raises(Conflict, match="export it again"):
        next(pieces)
    AuditSigningKey.objects.all().delete()
    with pytest.raises(Unavailable, match="signing key cannot be read"):
        audit_chain_export(now=NOW)


def test_the_export_is_an_address_of_the_api_for_administrators(browser: Browser, tmp_path: Path) -> None:
    client = browser()
    assert client.get("/api/v1/audit/export").status_code == 409
    two_runs()
    answer = client.get("/api/v1/audit/export", headers={"accept": "text/html"})
    assert answer["Content-Disposition"].startswith('attachment; filename="audit-')
    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    (tmp_path / "log").write_bytes(content)
    assert main(["audit", "verify", str(tmp_path / "log")]) == 0
