"""The hash chain of the audit log: every way to change history is found, pruning is not one."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.audit_chain import Checkpoint
from accounts.domain.scopes import Scope
from accounts.models import AuditCheckpoint, AuditEntry, AuditLink, AuditSigningKey
from accounts.selectors.audit_chain import Verified, audit_verify, checkpoints_between
from accounts.services import audit_record
from accounts.services.audit_chain import audit_chain, audit_prune
from common.errors import Conflict, InvalidInput

NOW = datetime(2026, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def record(number: int, *, at: datetime = NOW) -> int:
    entry = audit_record(
        actor="älice (token ci)",
        action="model.create",
        target=f"models/m{number}",
        now=at,
        before={"size": 1.5, "none": None},
        detail={"n": number},
    )
    return int(entry.pk)


def chained(count: int) -> list[int]:
    ids = [record(number) for number in range(count)]
    assert audit_chain(now=NOW) == count
    return ids


def execute(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def test_a_whole_chain_verifies_and_further_entries_join_it() -> None:
    assert audit_verify() == Verified("", 0, 0, 0, None)
    chained(3)
    record(4)
    found = audit_verify()
    assert (found.broken, found.checked, found.waiting) == ("", 3, 1)
    assert audit_chain(now=NOW) == 1
    assert audit_chain(now=NOW) == 0
    assert (audit_verify().broken, audit_verify().checked) == ("", 4)
    assert AuditCheckpoint.objects.count() == 2


def test_old_entries_are_chained_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.services.audit_chain._BATCH", 4)
    monkeypatch.setattr("accounts.selectors.audit_chain._AT_ONCE", 3)
    chained(11)
    seen: list[int] = []
    assert audit_verify(progress=seen.append).checked == 11
    assert seen == [3, 6, 9]
    assert AuditCheckpoint.objects.count() == 3


def test_entries_that_are_chained_while_the_chain_is_read_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    chained(3)
    name = "accounts.selectors.audit_chain.checkpoints_between"
    between = checkpoints_between

    def meanwhile(first: int, last: int | None) -> Any:
        monkeypatch.undo()
        chained(2)
        return between(first, last)

    monkeypatch.setattr(name, meanwhile)
    assert audit_verify().broken == ""
    assert audit_verify().checked == 5


def changed(ids: list[int]) -> None:
    execute("UPDATE accounts_auditentry SET actor = 'mallory' WHERE id = %s", ids[2])


def removed(ids: list[int]) -> None:
    execute("DELETE FROM accounts_auditentry WHERE id = %s", ids[2])


def removed_with_its_link(ids: list[int]) -> None:
    removed(ids)
    execute("DELETE FROM accounts_auditlink WHERE entry = %s", ids[2])


def exchanged(ids: list[int]) -> None:
    execute("UPDATE accounts_auditlink SET entry = 0 WHERE entry = %s", ids[1])
    execute("UPDATE accounts_auditlink SET entry = %s WHERE entry = %s", ids[1], ids[2])
    execute("UPDATE accounts_auditlink SET entry = %s WHERE entry = 0", ids[2])


def beheaded(ids: list[int]) -> None:
    execute("DELETE FROM accounts_auditlink WHERE entry <= %s", ids[1])
    execute("DELETE FROM accounts_auditentry WHERE id <= %s", ids[1])


def truncated(ids: list[int]) -> None:
    execute("DELETE FROM accounts_auditlink WHERE entry >= %s", ids[2])
    execute("DELETE FROM accounts_auditentry WHERE id >= %s", ids[2])


def built_again(ids: list[int]) -> None:
    changed(ids)
    signed = list(AuditCheckpoint.objects.values())
    AuditLink.objects.all().delete()
    AuditCheckpoint.objects.all().delete()
    audit_chain(now=NOW)
    AuditCheckpoint.objects.all().delete()
    AuditCheckpoint.objects.bulk_create([AuditCheckpoint(**row) for row in signed])


def inserted(ids: list[int]) -> None:
    removed_id, row = ids[2], AuditEntry.objects.filter(pk=ids[2]).values().get()
    execute("DELETE FROM accounts_auditentry WHERE id = %s", removed_id)
    AuditLink.objects.all().delete()
    AuditCheckpoint.objects.all().delete()
    audit_chain(now=NOW)
    AuditEntry(**{**row, "actor": "mallory"}).save(force_insert=True)
    audit_chain(now=NOW + timedelta(hours=3))


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        pytest.param(changed, "entry {2} (position 3) was changed", id="changed"),
        pytest.param(removed, "entry {2} (position 3) was removed", id="removed"),
        pytest.param(
            removed_with_its_link,
            "links 3 to 3 of the chain were removed, before entry {3}",
            id="removed with its link",
        ),
        pytest.param(exchanged, "entry {2} (position 2) was changed, or its link was moved", id="reordered"),
        pytest.param(beheaded, "links 1 to 2 of the chain were removed, before entry {2}", id="beginning removed"),
        pytest.param(truncated, "it ends at position 2, 5 was signed (entry {4})", id="end removed"),
        pytest.param(built_again, "was rewritten after signing", id="hashes computed again"),
        pytest.param(inserted, "entry {2} (position 5) was inserted", id="inserted"),
    ],
)
def test_a_change_of_history_is_found(attack: Callable[[list[int]], None], words: str) -> None:
    ids = chained(5)
    attack(ids)
    expected = words.replace("{2}", str(ids[2])).replace("{3}", str(ids[3])).replace("{4}", str(ids[4]))
    assert expected in audit_verify().broken
    with pytest.raises(CommandError, match="the audit log is broken"):
        call_command("audit_verify")
    with pytest.raises(Conflict, match="pruning would hide"):
        audit_prune(before=NOW, actor="a", now=NOW)


def test_an_entry_far_below_the_newest_is_not_chained_and_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.services.audit_chain.LOOK_BACK", 2)
    monkeypatch.setattr("accounts.selectors.audit_chain.LOOK_BACK", 2)
    ids = chained(5)
    AuditLink.objects.all().delete()
    AuditCheckpoint.objects.all().delete()
    row = AuditEntry.objects.filter(pk=ids[0]).values().get()
    execute("DELETE FROM accounts_auditentry WHERE id = %s", ids[0])
    audit_chain(now=NOW)
    AuditEntry(**row).save(force_insert=True)
    assert audit_chain(now=NOW) == 0
    assert f"entry {ids[0]} was inserted" in audit_verify().broken


def test_an_entry_of_a_long_transaction_is_no_insertion() -> None:
    ids = chained(3)
    row = AuditEntry.objects.filter(pk=ids[1]).values().get()
    AuditLink.objects.all().delete()
    AuditCheckpoint.objects.all().delete()
    execute("DELETE FROM accounts_auditentry WHERE id = %s", ids[1])
    audit_chain(now=NOW)
    AuditEntry(**row).save(force_insert=True)
    assert audit_chain(now=NOW + timedelta(minutes=1)) == 1
    assert (audit_verify().broken, audit_verify().checked) == ("", 3)


def test_only_a_checkpoint_kept_elsewhere_shows_that_everything_was_truncated(tmp_path: Path) -> None:
    ids = chained(5)
    kept = tmp_path / "checkpoint.json"
    call_command("audit_verify", save=kept)
    truncated(ids)
    AuditCheckpoint.objects.all().delete()
    call_command("audit_verify")
    with pytest.raises(CommandError, match=r"ends at position 2, 5 was signed"):
        call_command("audit_verify", checkpoint=kept)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"position": true}', "[" * 9000, "\x00"])
def test_a_file_that_is_no_checkpoint_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    with pytest.raises(CommandError, match="is no checkpoint of the audit log"):
        call_command("audit_verify", checkpoint=file)


def test_a_checkpoint_that_cannot_be_read_or_written_is_one_sentence(tmp_path: Path) -> None:
    chained(1)
    with pytest.raises(CommandError, match="none cannot be read"):
        call_command("audit_verify", checkpoint=tmp_path / "none")
    with pytest.raises(CommandError, match="cannot be written: Is a directory"):
        call_command("audit_verify", save=tmp_path)


def test_a_checkpoint_of_another_key_is_forged(tmp_path: Path) -> None:
    chained(2)
    kept = tmp_path / "checkpoint.json"
    call_command("audit_verify", save=kept)
    kept.write_text(kept.read_text().replace('"position": 2', '"position": 1'))
    with pytest.raises(CommandError, match="position 1 is signed by no key of this installation"):
        call_command("audit_verify", checkpoint=kept)


def test_a_pruning_that_was_not_signed_is_forged() -> None:
    ids = chained(5)
    beheaded(ids)
    link = AuditLink.objects.get(position=3)
    AuditCheckpoint.objects.create(
        position=2, entry=ids[1], hash=link.hash, pruned=True, at="2026-01-01T00:00:00+00:00", signature="00" * 64
    )
    assert "position 2 is signed by no key" in audit_verify().broken


def test_pruning_keeps_the_chain_valid() -> None:
    for number in range(6):
        record(number, at=NOW + timedelta(days=number))
    later = NOW + timedelta(days=10)
    assert audit_prune(before=NOW + timedelta(days=4), actor="ops", now=later) == 4
    assert AuditEntry.objects.filter(action="audit.prune").get().detail["removed"] == 4
    audit_chain(now=later)
    found = audit_verify()
    assert (found.broken, found.checked, found.pruned) == ("", 3, 4)
    assert audit_prune(before=later, actor="ops", now=later) == 2  # the entry of the pruning itself is kept
    assert audit_verify().broken == ""
    assert audit_prune(before=NOW, actor="ops", now=later) == 0
    with pytest.raises(InvalidInput, match="in the future"):
        audit_prune(before=later + timedelta(days=1), actor="ops", now=later)


def test_a_pruning_beside_a_verification_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.selectors.audit_chain._AT_ONCE", 2)
    for number in range(6):
        record(number, at=NOW + timedelta(days=number))
    later = NOW + timedelta(days=10)
    audit_chain(now=later)
    prunings = [NOW + timedelta(days=3), NOW + timedelta(days=5)]

    def prune(_checked: int) -> None:
        if prunings:
            audit_prune(before=prunings.pop(0), actor="ops", now=later)

    found = audit_verify(progress=prune)
    assert (found.broken, found.pruned, prunings) == ("", 3, [])
    execute("DELETE FROM accounts_auditlink WHERE position = 6")
    assert "before entry" in audit_verify().broken


def test_a_long_log_is_verified_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.selectors.audit_chain._AT_ONCE", 2)
    ids = chained(7)
    parts, after = [], 0
    while not parts or not parts[-1].complete:
        parts.append(audit_verify(after=after, limit=2))
        after = parts[-1].position
    assert [part.checked for part in parts] == [2, 2, 2, 1]
    changed(ids)
    assert audit_verify(after=4, limit=2).broken == ""
    assert f"entry {ids[2]} (position 3) was changed" in audit_verify(after=2, limit=2).broken
    with pytest.raises(InvalidInput, match="after is 99; the chain has no such position"):
        audit_verify(after=99)
    truncated(ids)
    assert "it ends at position 2, 7 was signed" in audit_verify(after=2, limit=2).broken


def test_an_insertion_is_found_by_the_part_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.selectors.audit_chain._AT_ONCE", 2)
    ids = chained(5)
    inserted(ids)
    assert f"entry {ids[2]} (position 5) was inserted" in audit_verify(after=4, limit=2).broken


def test_the_log_is_verified_by_the_api(api: Callable[..., APIClient]) -> None:
    ids = chained(3)
    client = api(Scope.ADMIN)
    answer = client.get("/api/v1/audit/verification").json()
    assert (answer["broken"], answer["complete"], answer["checked"], answer["position"]) == ("", True, 3, 3)
    kept, signature = Checkpoint.of_text(json.dumps(answer["checkpoint"]))
    assert kept.is_signed_by(answer["public_keys"][0], signature)
    assert client.get("/api/v1/audit/verification?after=-1").status_code == 400
    assert client.get("/api/v1/audit/verification?after=9").json()["error"]["field"] == "after"
    changed(ids)
    assert f"entry {ids[2]}" in client.get("/api/v1/audit/verification").json()["broken"]


def test_the_chain_goes_on_after_all_was_pruned() -> None:
    chained(3)
    later = NOW + timedelta(days=1)
    assert audit_prune(before=later, actor="ops", now=later) == 3
    assert AuditLink.objects.count() == 0
    assert audit_chain(now=later) == 1
    assert AuditLink.objects.get().position == 4
    assert audit_verify().broken == ""
    with pytest.raises(CommandError, match="expected a day"):
        call_command("audit_prune", "2026-02-31")


def test_without_the_key_entries_are_chained_and_nothing_is_signed(settings: Settings) -> None:
    chained(2)
    settings.SECRET_KEY = "n" * 40
    record(3)
    assert audit_chain(now=NOW) == 1
    assert (AuditCheckpoint.objects.count(), AuditSigningKey.objects.count()) == (1, 1)
    assert "is signed by no key" in audit_verify().broken


@pytest.mark.django_db(transaction=True)
def test_writers_and_chainers_at_once_make_one_chain() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")

    def write(start: int) -> None:
        for number in range(start, start + 25):
            record(number)
        connections.close_all()

    def chain() -> None:
        for _ in range(20):
            audit_chain(now=NOW)
        connections.close_all()

    threads = [*(Thread(target=write, args=(100 * each,)) for each in range(4)), *(Thread(target=chain) for _ in "abc")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    audit_chain(now=NOW)
    found = audit_verify()
    assert (found.broken, found.checked, found.waiting) == ("", 100, 0)
