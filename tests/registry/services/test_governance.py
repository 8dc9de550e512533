"""Protected aliases and approvals: who may what, and what is kept of it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from rest_framework.test import APIClient

from accounts.domain.approver import Approver
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from registry import services
from registry.domain.approval import Approval, refusal, unfit
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion, RegisteredModel
from registry.services import governance

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
Register = Callable[..., ModelVersion]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WHO: dict[str, Any] = {"now": NOW, "actor": "alice"}
MODEL, VERSION = "/api/v1/models/digits", "/api/v1/models/digits/versions/1"


def decide(decision: Approval, comment: str = "", username: str = "bob") -> ModelVersion:
    said: dict[str, Any] = {"comment": comment, "now": NOW, "actor": f"{username} (token x)"}
    said["approver"] = Approver(username)
    return governance.version_decide(model="digits", number=1, decision=decision, **said)


class TestProtectedAliases:
    def test_only_admins_set_move_and_delete_one(self, register: Register) -> None:
        register(content="one")
        register(content="two")
        governance.alias_protect(model="digits", name="champion", **WHO)
        said: dict[str, Any] = {"model": "digits", "name": "champion", **WHO}
        with pytest.raises(NotPermitted, match="the alias 'champion' of model 'digits' is protected: only an admin of"):
            services.alias_set(number=1, **said)
        assert services.alias_set(number=1, by_admin=True, **said)[0].is_protected
        for forbidden in (lambda: services.alias_set(number=2, **said), lambda: services.alias_delete(**said)):
            with pytest.raises(NotPermitted):
                forbidden()
        with pytest.raises(NotPermitted, match="model 'digits' protects the alias champion: only an admin"):
            services.model_delete(name="digits", **WHO)
        assert services.alias_set(model="digits", name="other", number=2, **WHO)[1]
        services.alias_delete(by_admin=True, **said)

    def test_one_is_protected_once_and_unprotected_again(self, register: Register) -> None:
        register()
        for name in ("champion", "blessed", "champion"):
            governance.alias_protect(model="digits", name=name, **WHO)
        assert RegisteredModel.objects.get().protected_aliases == ["blessed", "champion"]
        for _ in range(2):
            governance.alias_unprotect(model="digits", name="champion", **WHO)
        assert RegisteredModel.objects.get().protected_aliases == ["blessed"]
        assert services.alias_set(model="digits", name="champion", number=1, **WHO)[1]
        actions = AuditEntry.objects.filter(target="models/digits/aliases/champion").order_by("pk")
        assert list(actions.values_list("action", flat=True)) == ["alias.protect", "alias.unprotect", "alias.set"]

    def test_what_no_alias_can_be_and_too_many_are_refused(self, register: Register) -> None:
        register()
        with pytest.raises(InvalidInput):
            governance.alias_protect(model="digits", name="no name", **WHO)
        with pytest.raises(NotFound):
            governance.alias_protect(model="letters", name="champion", **WHO)
        RegisteredModel.objects.update(protected_aliases=[f"a{number}" for number in range(50)])
        with pytest.raises(InvalidInput, match="has 50 protected aliases"):
            governance.alias_protect(model="digits", name="champion", **WHO)

    def test_through_the_api_the_scope_decides(self, api: Api, register: Register) -> None:
        register()
        admin, deployer = api(Scope.ADMIN), api(Scope.WRITE)
        assert admin.put(f"{MODEL}/aliases/champion/protection").json()["protected_aliases"] == ["champion"]
        refused = deployer.put(f"{MODEL}/aliases/champion", {"version": 1})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_permitted")
        assert admin.put(f"{MODEL}/aliases/champion", {"version": 1}).json()["is_protected"] is True
        assert deployer.delete(f"{MODEL}/aliases/champion").status_code == 403
        assert deployer.delete(MODEL).status_code == 403
        assert deployer.delete(f"{MODEL}/aliases/champion/protection").status_code == 403
        assert admin.delete(f"{MODEL}/aliases/champion/protection").status_code == 204
        assert deployer.delete(f"{MODEL}/aliases/champion").status_code == 204


class TestDecisions:
    def test_the_newest_counts_and_all_are_in_the_audit_log(self, register: Register) -> None:
        register()
        decide(Approval.APPROVED, " looks right ")
        version = decide(Approval.DECLINED, "it is slow", "carol")
        assert (version.approval, version.approval_by, version.approval_comment) == ("declined", "carol", "it is slow")
        logged = AuditEntry.objects.filter(action__in=["model_version.approve", "model_version.decline"]).order_by("pk")
        assert [(entry.actor, entry.after) for entry in logged] == [
            ("bob (token x)", {"approval": "approved", "comment": "looks right"}),
            ("carol (token x)", {"approval": "declined", "comment": "it is slow"}),
        ]

    def test_who_registered_it_may_decline_and_not_approve(self, register: Register) -> None:
        register()
        with pytest.raises(NotPermitted, match="digits version 1 is not approved: alice registered it, and it takes"):
            decide(Approval.APPROVED, username="alice")
        assert decide(Approval.DECLINED, "not yet", "alice").approval == "declined"

    @pytest.mark.parametrize("status", [Status.PENDING, Status.REJECTED])
    def test_only_a_ready_version_is_approved(self, register: Register, status: Status) -> None:
        register(status=status)
        with pytest.raises(Conflict, match="only a READY version can be approved"):
            decide(Approval.APPROVED)
        decide(Approval.DECLINED, "no")

    @pytest.mark.parametrize(
        ("decision", "comment"),
        [
            pytest.param(Approval.DECLINED, " ", id="declined without a reason"),
            pytest.param(Approval.APPROVED, "x" * 1001, id="a long comment"),
            pytest.param(Approval.APPROVED, "\x1b[2J", id="what steers a terminal"),
        ],
    )
    def test_a_wrong_comment_is_refused(self, register: Register, decision: Approval, comment: str) -> None:
        register()
        with pytest.raises(InvalidInput) as refused:
            decide(decision, comment)
        assert refused.value.field == "comment"
        assert ModelVersion.objects.get().approval == "unreviewed"

    def test_the_database_takes_no_other_state(self, register: Register) -> None:
        register()
        for fields in ({"approval": "maybe", "approval_at": NOW}, {"approval": "approved"}, {"approval_at": NOW}):
            with pytest.raises(IntegrityError), transaction.atomic():
                ModelVersion.objects.update(**fields)

    def test_through_the_api(self, api: Api, register: Register) -> None:
        register()
        ModelVersion.objects.update(created_by="ci")
        deployer = api(Scope.WRITE)
        answer = deployer.put(f"{VERSION}/approval", {"state": "approved", "comment": "fine"})
        said = answer.json()["approval"]
        assert (said["state"], said["by"], said["comment"]) == ("approved", "alice", "fine")
        assert deployer.put(f"{VERSION}/approval", {"state": "unreviewed"}).status_code == 400
        assert api(Scope.READ).put(f"{VERSION}/approval", {"state": "approved"}).status_code == 403
        ModelVersion.objects.update(created_by="alice (token laptop)")
        assert deployer.put(f"{VERSION}/approval", {"state": "approved"}).status_code == 403
        for state, count in (("approved", 1), ("declined", 0)):
            assert len(deployer.get(f"{MODEL}/versions?approval={state}").json()["results"]) == count

    def test_an_admin_says_whether_versions_need_one(self, api: Api, register: Register) -> None:
        register()
        admin = api(Scope.ADMIN)
        for required in (True, True, False):
            changed = admin.put(f"{MODEL}/approval", {"requires_approval": required}, format="json")
            assert changed.json()["requires_approval"] is required
        assert AuditEntry.objects.filter(action="model.require_approval").count() == 2
        assert api(Scope.WRITE).put(f"{MODEL}/approval", {"requires_approval": True}, format="json").status_code == 403


@pytest.mark.parametrize(
    ("state", "is_required", "told"),
    [
        pytest.param(Approval.UNREVIEWED, False, "", id="nothing is asked for"),
        pytest.param(Approval.DECLINED, False, "", id="nor does a decision count then"),
        pytest.param(Approval.APPROVED, True, "", id="approved"),
        pytest.param(Approval.UNREVIEWED, True, "is not approved", id="nobody decided"),
        pytest.param(Approval.DECLINED, True, "was declined by bob: it is slow; roll out", id="declined"),
    ],
)
def test_what_may_be_served(state: Approval, is_required: bool, told: str) -> None:
    found = unfit(state, is_required=is_required, by="bob", comment="it is slow.")
    assert found.startswith(told)
    assert bool(found) == bool(told)


@pytest.mark.parametrize(
    ("actor", "is_refused"),
    [("alice", True), ("alice (token ci)", True), ("alice2", False), ("bob (token alice)", False)],
)
def test_who_registered_it_is_known_with_every_token(actor: str, is_refused: bool) -> None:
    assert bool(refusal(Approver("alice"), {"carol": (), actor: ()})) == is_refused
