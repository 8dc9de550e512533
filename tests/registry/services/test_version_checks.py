import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from accounts.domain.roles import Owned
from accounts.models import AuditEntry
from accounts.services import teams
from clusters.models import Cluster
from common.errors import Conflict
from registry.domain.version_lifecycle import MAX_ATTEMPTS, Accepted, Refused, Status, Unchecked
from registry.models import ModelVersion
from registry.selectors import versions_to_check
from registry.services.version_checks import (
    Claim,
    check_again,
    check_end,
    check_renew,
    checks_at_once,
    checks_begin,
    checks_release,
    checks_renew,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEASE = timedelta(minutes=2)
AT_ONCE = 2
PARKED = timedelta(seconds=30)
SIGNATURE = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], "outputs": []}
ACCEPTED = Accepted(SIGNATURE, "onnxruntime_onnx", {"load_seconds": 0.1, "batches": []})
Register = Callable[..., ModelVersion]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def two_at_once(settings: Settings) -> None:
    """At most two checks, whatever the machine has."""
    settings.MODEL_CHECKS_AT_ONCE = AT_ONCE


@pytest.fixture
def pending(register: Register) -> ModelVersion:
    return register(status=Status.PENDING)


def begin(version: ModelVersion, now: datetime = NOW) -> Claim | None:
    return next(iter(checks_begin(version_id=version.pk, now=now, lease=LEASE)), None)


def claimed(version: ModelVersion, now: datetime = NOW) -> Claim:
    claim = begin(version, now)
    assert claim is not None
    return claim


def test_an_accepted_version_is_ready_with_what_was_found(pending: ModelVersion) -> None:
    assert check_end(claim=claimed(pending), outcome=ACCEPTED, now=NOW)
    pending.refresh_from_db()
    assert (pending.status, pending.reason, pending.attempts) == ("READY", "", 1)
    assert (pending.signature, pending.platform) == (SIGNATURE, "onnxruntime_onnx")
    assert pending.profile == {"load_seconds": 0.1, "batches": []}
    assert (pending.claim, pending.next_check_at) == (None, None)
    entry = AuditEntry.objects.get(action="model_version.check")
    assert (entry.actor, entry.target) == ("fairlead", "models/digits/versions/1")
    assert (entry.after or {})["status"] == "READY"


def test_a_refused_version_is_rejected_with_the_runtimes_sentence(pending: ModelVersion) -> None:
    check_end(claim=claimed(pending), outcome=Refused("opset 99 is not supported"), now=NOW)
    pending.refresh_from_db()
    assert (pending.status, pending.reason, pending.signature) == ("REJECTED", "opset 99 is not supported", {})


def test_a_rejected_version_is_checked_again_where_somebody_asks(pending: ModelVersion) -> None:
    with pytest.raises(Conflict, match="is PENDING; only a REJECTED version is checked again"):
        check_again(model="digits", number=1, now=NOW, actor="alice")
    check_end(claim=claimed(pending), outcome=Refused("opset 99 is not supported"), now=NOW)
    again = check_again(model="digits", number=1, now=NOW, actor="alice")
    assert (again.status, again.reason, again.attempts) == ("PENDING", "", 0)
    entry = AuditEntry.objects.get(action="model_version.recheck")
    assert (entry.actor, (entry.before or {})["reason"]) == ("alice", "opset 99 is not supported")
    check_end(claim=claimed(again), outcome=ACCEPTED, now=NOW)
    again.refresh_from_db()
    assert (again.status, again.reason) == ("READY", "")


@pytest.mark.parametrize("of_installation", [True, False], ids=["the installation lacks something", "the model is bad"])
def test_a_push_of_the_same_files_is_a_check_again_only_where_it_may_help(
    pending: ModelVersion, register: Register, of_installation: bool
) -> None:
    check_end(claim=claimed(pending), outcome=Refused("needs lightgbm", of_installation=of_installation), now=NOW)
    assert register(status=Status.PENDING).status == (Status.PENDING if of_installation else Status.REJECTED)


def test_one_that_could_not_be_checked_is_due_again_later(pending: ModelVersion) -> None:
    check_end(claim=claimed(pending), outcome=Unchecked("no process could be started"), now=NOW)
    assert versions_to_check(now=NOW + timedelta(seconds=4), limit=9) == []
    assert versions_to_check(now=NOW + timedelta(seconds=5), limit=9) == [pending.pk]
    pending.refresh_from_db()
    assert (pending.status, pending.reason) == ("PENDING", "no process could be started")
    assert not AuditEntry.objects.filter(action="model_version.check").exists()


def test_who_comes_second_gets_nothing_until_the_lease_is_over(pending: ModelVersion) -> None:
    claimed(pending)
    assert begin(pending) is None
    assert begin(pending, NOW + LEASE - timedelta(seconds=1)) is None
    assert begin(pending, NOW + LEASE) is None, "its worker ended: it is parked"
    assert begin(pending, NOW + LEASE + PARKED) is not None


def test_the_outcome_of_a_lost_claim_is_dropped(pending: ModelVersion) -> None:
    slow = claimed(pending)
    assert begin(pending, NOW + LEASE) is None
    later = NOW + LEASE + PARKED
    other = claimed(pending, later)
    assert not check_renew(claim=slow, now=later, lease=LEASE)
    assert not check_end(claim=slow, outcome=Refused("late"), now=later)
    assert check_end(claim=other, outcome=ACCEPTED, now=later)
    pending.refresh_from_db()
    assert pending.status == "READY"


def test_a_renewed_claim_is_held_longer(pending: ModelVersion) -> None:
    claim = claimed(pending)
    later = NOW + LEASE - timedelta(seconds=1)
    assert check_renew(claim=claim, now=later, lease=LEASE)
    assert begin(pending, NOW + LEASE) is None
    pending.refresh_from_db()
    assert pending.claim is not None
    assert begin(pending, later + LEASE) is None
    pending.refresh_from_db()
    assert pending.claim is None, "its lease is over"


def test_a_version_deleted_meanwhile_is_no_fault(pending: ModelVersion) -> None:
    claim = claimed(pending)
    pending.delete()
    assert not check_end(claim=claim, outcome=ACCEPTED, now=NOW)
    assert begin(pending) is None


def test_a_version_whose_checks_take_their_worker_down_is_rejected_in_the_end(pending: ModelVersion) -> None:
    now, parked = NOW, []
    for _ in range(MAX_ATTEMPTS):
        assert begin(pending, now) is not None
        now += LEASE
        assert begin(pending, now) is None
        pending.refresh_from_db()
        if pending.next_check_at is not None:
            assert pending.reason.startswith("its check ended its worker; parked for ")
            parked.append((pending.next_check_at - now).total_seconds())
            now = pending.next_check_at
    assert parked == [30, 60]
    assert (pending.status, pending.next_check_at, pending.of_installation) == ("REJECTED", None, False)
    assert f"ended its worker in the last of {MAX_ATTEMPTS} attempts" in pending.reason
    assert "fairlead versions recheck" in pending.reason
    assert AuditEntry.objects.filter(action="model_version.check").count() == 1


@pytest.mark.parametrize("status", [Status.READY, Status.REJECTED])
def test_a_final_version_is_not_checked(register: Register, status: Status) -> None:
    assert begin(register(status=status)) is None


def test_no_more_checks_at_a_time_than_the_worker_has_room_for(register: Register) -> None:
    versions = [register(content=str(n), status=Status.PENDING) for n in range(AT_ONCE + 1)]
    claims = [begin(version) for version in versions]
    assert [claim is not None for claim in claims] == [True] * AT_ONCE + [False]
    assert claims[0] is not None
    check_end(claim=claims[0], outcome=ACCEPTED, now=NOW)
    assert begin(versions[-1]) is not None


def test_checks_run_beside_each_other_as_the_place_allows(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MODEL_CHECKS_AT_ONCE = 0
    for cores, at_once in ((1, 2), (6, 3), (64, 8)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, cores=cores: set(range(cores)))
        assert checks_at_once(NOW) == at_once
    Cluster.objects.create(name="prod", kind="kubernetes", created_at=NOW)
    settings.DEFAULT_CLUSTER = "prod"
    assert checks_at_once(NOW) == 20
    settings.MODEL_CHECKS_AT_ONCE = 50
    assert checks_at_once(NOW) == 50


def test_a_parked_check_leaves_its_place_to_others(register: Register) -> None:
    versions = [register(content=str(n), status=Status.PENDING) for n in range(AT_ONCE + 1)]
    for version in versions[:AT_ONCE]:
        claimed(version)
    for version in versions[:AT_ONCE]:
        assert begin(version, NOW + LEASE) is None
    assert begin(versions[-1], NOW + LEASE) is not None


def test_teams_take_turns(register: Register) -> None:
    """A team that pushes many versions does not delay another's; who is not due in his turn gets no claim."""
    for team in ("red", "blue"):
        teams.team_create(name=team, actor="test", now=NOW)
        teams.ownership_set(team=team, kind=Owned.MODEL, name=team, actor="test", now=NOW)
    many = [register("red", content=f"red {n}", status=Status.PENDING) for n in range(9)]
    few = [register("blue", content=f"blue {n}", status=Status.PENDING) for n in range(2)]
    free = register("nobodys", content="nobody's", status=Status.PENDING)
    order = versions_to_check(now=NOW, limit=12)
    assert order == [each.pk for each in (many[0], few[0], free, many[1], few[1], *many[2:])]
    assert begin(many[1]) is None, "blue's is first"
    began, now, running = [], NOW, [claimed(many[0]), claimed(few[0])]
    for _ in range(5):
        now += timedelta(seconds=1)
        assert check_end(claim=running.pop(0), outcome=ACCEPTED, now=now)
        (version_id,) = versions_to_check(now=now, limit=1)
        running.append(claimed(ModelVersion.objects.get(pk=version_id), now))
        began.append(version_id)
    assert began == [each.pk for each in (free, many[1], few[1], many[2], many[3])]


def test_who_waited_longest_is_first(register: Register) -> None:
    versions = [register(content=str(n), status=Status.PENDING) for n in range(3)]
    ModelVersion.objects.filter(pk=versions[0].pk).update(next_check_at=NOW + timedelta(seconds=1))
    assert versions_to_check(now=NOW + LEASE, limit=2) == [versions[1].pk, versions[2].pk]


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_exactly_one_gets_the_check(pending: ModelVersion) -> None:
    together, claims, faults = threading.Barrier(6), [], []

    def contend() -> None:
        try:
            together.wait(timeout=10)
            claims.append(begin(pending))
        except Exception as error:
            faults.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=contend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert faults == []
    assert [claim is not None for claim in claims].count(True) == 1
    pending.refresh_from_db()
    assert pending.attempts == 1


def batch(version: ModelVersion, now: datetime = NOW, most: int = 64) -> list[Claim]:
    return checks_begin(version_id=version.pk, now=now, lease=LEASE, most=most)


def test_a_batch_has_one_claim_and_counts_as_one_check(register: Register) -> None:
    """Those that wait are divided among the workers that are free."""
    versions = [register(content=str(n), status=Status.PENDING) for n in range(5)]
    first = batch(versions[0])
    assert [claim.version_id for claim in first] == [version.pk for version in versions[:3]]
    assert len({claim.id for claim in first}) == 1
    assert {claim.attempt for claim in first} == {1}
    second = batch(versions[3])
    assert [claim.version_id for claim in second] == [version.pk for version in versions[3:]]
    late = register(content="late", status=Status.PENDING)
    assert batch(late) == []


def test_a_batch_goes_on_while_one_of_its_claims_is_held(register: Register) -> None:
    versions = [register(content=str(n), status=Status.PENDING) for n in range(3)]
    first, *rest = batch(versions[0], most=3)
    assert check_end(claim=first, outcome=ACCEPTED, now=NOW)
    later = NOW + LEASE / 2
    assert checks_renew(claim_id=first.id, now=later, lease=LEASE)
    assert set(ModelVersion.objects.filter(claim=first.id).values_list("next_check_at", flat=True)) == {later + LEASE}
    assert check_end(claim=rest[0], outcome=Refused("it is none"), now=later)
    assert not checks_renew(claim_id=first.id, now=later, lease=LEASE)


def test_what_a_batch_does_not_come_to_is_as_if_it_had_not_been_claimed(register: Register) -> None:
    versions = [register(content=str(n), status=Status.PENDING) for n in range(4)]
    first, rest = batch(versions[0])
    assert rest.version_id == versions[1].pk
    checks_release(claims=[rest], now=NOW)
    assert not check_end(claim=rest, outcome=Refused("it is none"), now=NOW)
    released = ModelVersion.objects.get(pk=rest.version_id)
    assert (released.status, released.attempts, released.claim, released.next_check_at) == ("PENDING", 0, None, NOW)
    assert check_end(claim=first, outcome=ACCEPTED, now=NOW)


def test_a_batch_whose_worker_ended_is_parked_and_then_checked_one_by_one(register: Register) -> None:
    versions = [register(content=str(n), status=Status.PENDING) for n in range(2)]
    held = batch(versions[0], most=2) + batch(versions[1], most=2)
    for version in versions:
        assert batch(version, NOW + LEASE) == []
    again = batch(versions[0], NOW + LEASE + PARKED)
    assert [claim.attempt for claim in again] == [2]
    assert not check_end(claim=held[0], outcome=Refused("it is none"), now=NOW + LEASE + PARKED)


def test_a_team_with_many_versions_delays_another_by_a_batch_only(register: Register) -> None:
    for team in ("red", "blue"):
        teams.team_create(name=team, actor="test", now=NOW)
        teams.ownership_set(team=team, kind=Owned.MODEL, name=team, actor="test", now=NOW)
    many = [register("red", content=f"red {n}", status=Status.PENDING) for n in range(200)]
    running = batch(many[0])
    assert len(running) == 64
    few = register("blue", content="blue", status=Status.PENDING)
    assert versions_to_check(now=NOW, limit=1) == [few.pk]
    assert few.pk in {claim.version_id for claim in batch(few)}
