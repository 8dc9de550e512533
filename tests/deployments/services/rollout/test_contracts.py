"""A rollout that would break clients: refused wherever it would start, or accepted with a reason, and then shown."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from common.errors import ContractBroken, InvalidInput
from deployments.models import Rollout
from deployments.selectors import rollout_detail
from deployments.services import check_reason, rollout_plan, rollout_start, service_apply, service_plan
from events.models import Event
from tests.deployments._support.platform import SIGNATURE, Platform

BROKEN = {**SIGNATURE, "outputs": []}
SENTENCE = "output 'label' is not given any more"


@pytest.fixture
def ready(platform: Platform) -> Platform:
    """Return a platform that serves version 1, with a version 2 that gives no label."""
    platform.live()
    platform.version(2, signature=BROKEN)
    return platform


def wish(platform: Platform, **more: Any) -> dict[str, Any]:
    return {"namespace": "default", "name": "digits", "actor": "alice", "now": platform.clock(), **more}


def to_2(platform: Platform, **more: Any) -> dict[str, Any]:
    return wish(platform, version="2", policy=None, **more)


def file_of_2(platform: Platform, **more: Any) -> dict[str, Any]:
    return wish(platform, document=platform.document(uri="models:/digits/2"), **more)


@pytest.mark.parametrize(
    ("begin", "asked"),
    [
        pytest.param(rollout_start, to_2, id="a rollout"),
        pytest.param(rollout_plan, to_2, id="its dry run"),
        pytest.param(service_apply, file_of_2, id="a service file"),
        pytest.param(service_plan, file_of_2, id="its dry run, too"),
    ],
)
def test_what_would_break_clients_is_refused_with_the_list(
    ready: Platform, begin: Callable[..., Any], asked: Callable[..., dict[str, Any]]
) -> None:
    with pytest.raises(ContractBroken) as refusal:
        begin(**asked(ready))
    assert refusal.value.details == (SENTENCE,)
    assert "digits version 2 would break clients of digits version 1, which is live" in refusal.value.message
    assert not Rollout.objects.exists()


def test_a_shadow_is_refused_too_since_it_would_fail_on_every_copy(ready: Platform) -> None:
    ready.policy(name="shadow", strategy="shadow", steps=[{"weight": 20}])
    with pytest.raises(ContractBroken):
        ready.start("2", "shadow")


@pytest.mark.parametrize(
    ("begin", "asked", "action"),
    [
        pytest.param(rollout_start, to_2, "rollout.start", id="a rollout"),
        pytest.param(service_apply, file_of_2, "service.apply", id="a service file"),
    ],
)
def test_accepted_breaks_are_kept_with_the_rollout_and_in_the_audit_log(
    ready: Platform, begin: Callable[..., Any], asked: Callable[..., dict[str, Any]], action: str
) -> None:
    begin(**asked(ready, accept="nobody reads labels"))
    contract = rollout_detail(rollout_id=Rollout.objects.get().pk, now=timezone.now()).contract
    assert contract is not None
    assert (contract.breaks, contract.accepted_by, contract.accepted_because) == (
        (SENTENCE,),
        "alice",
        "nobody reads labels",
    )
    detail = AuditEntry.objects.filter(action=action).latest("id").detail
    assert (detail["accepted_contract_changes"], detail["reason"]) == ([SENTENCE], "nobody reads labels")
    assert f"alice accepted that {SENTENCE}" in Event.objects.get(kind="RolloutStarted").message


def test_a_plan_tells_what_harms_nobody(ready: Platform) -> None:
    wider = {**SIGNATURE, "outputs": [*SIGNATURE["outputs"], {"name": "scores", "datatype": "FP32", "shape": [-1, 10]}]}
    ready.version(3, signature=wider)
    plan = rollout_plan(**{**to_2(ready), "version": "3"}).plan
    assert plan.message == "new revision digits-00002 of digits version 3; rollout by policy careful"
    assert plan.contract is not None
    assert plan.contract.notes == ("output 'scores' is new",)
    assert not Rollout.objects.exists()


def test_a_version_whose_signature_is_not_known_is_told_and_rolled_out(ready: Platform) -> None:
    ready.version(3, signature={})
    contract = rollout_detail(rollout_id=ready.start("3").pk, now=timezone.now()).contract
    assert contract is not None
    assert contract.unknown == "the signature of digits version 3 is not known, so nothing could be compared"


def test_the_files_own_config_can_break_clients_of_the_same_version(platform: Platform) -> None:
    platform.version(1, signature={**SIGNATURE, "max_batch_size": 8})
    platform.policy()
    platform.apply()
    platform.until(lambda: platform.view().phase == "Ready")
    narrow = platform.document()
    narrow["spec"]["predictor"]["model"]["config"] = {"max_batch_size": 2}
    with pytest.raises(ContractBroken) as refusal:
        service_apply(**wish(platform, document=narrow))
    assert refusal.value.details == ("a request may have 2 rows, 8 before",)


def test_a_version_keeps_the_found_batch_size_that_clients_had(platform: Platform) -> None:
    """Measured again, the same model may be found good at less."""
    for number, rows in ((1, 16), (2, 64)):
        version = platform.version(number, signature={**SIGNATURE, "max_batch_size": rows})
        version.profile = {"max_batch_size": rows}
        version.save(update_fields=["profile"])
    platform.policy()
    platform.apply()
    platform.until(lambda: platform.view().phase == "Ready")
    platform.policy(name="quick", steps=[{"weight": 50}])
    for number, rows in (("2", 64), ("1", 64)):
        contract = rollout_detail(rollout_id=platform.start(number, "quick").pk, now=timezone.now()).contract
        assert contract is not None
        assert contract.breaks == ()
        platform.until(lambda: platform.rollout().phase == "Healthy")
        newest = max(platform.cluster.applied[-1].revisions, key=lambda each: each.name)
        assert (newest.model_version, newest.model_config["max_batch_size"]) == (number, rows)


def test_the_way_back_is_open_whatever_it_takes_from_clients(platform: Platform) -> None:
    platform.live()
    wider = {**SIGNATURE, "outputs": [*SIGNATURE["outputs"], {"name": "scores", "datatype": "FP32", "shape": [-1, 10]}]}
    platform.version(2, signature=wider)
    platform.policy(name="quick", steps=[{"weight": 50}])
    platform.start("2", "quick")
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert platform.back().contract is None


def test_an_alias_that_moves_to_what_breaks_clients_is_told_until_somebody_accepts_it(platform: Platform) -> None:
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.alias(platform.version(2, signature=BROKEN))
    platform.turn()
    platform.turn()
    waits = platform.view().waits
    assert waits is not None
    assert (waits.condition, SENTENCE in waits.evidence) == ("AliasRefused", True)
    assert platform.events().count("AliasRefused") == 1

    rollout_start(**{**to_2(platform), "version": "@champion", "accept": "nobody reads labels"})
    platform.turn()
    assert Rollout.objects.count() == 1
    waits = platform.view().waits
    assert waits is not None
    assert waits.condition != "AliasRefused"
    assert platform.view().reason.count("alias") == 0


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_reason_is_a_sentence(reason: str) -> None:
    with pytest.raises(InvalidInput, match="why clients may break"):
        check_reason(reason)


def test_what_is_imported_first_cannot_be_accepted_before_it_is_known(ready: Platform) -> None:
    document = ready.document(uri="https://models.example.com/digits.onnx")
    with pytest.raises(InvalidInput, match="is for a version that is there"):
        service_apply(**wish(ready, document=document, accept="whatever comes"))
