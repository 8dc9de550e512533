"""Home, on the real database and the real services."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.auth.access import may_names
from accounts.domain.approver import Approver
from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.services.teams import member_delete, member_set, ownership_set, team_create
from clusters.models import Cluster
from console.web.home_page import SHOWN, home_page
from deployments.domain.phases import Code, Phase
from deployments.models import InferenceService, Rollout
from deployments.services import rollout_abort, service_stop
from events.web.live_updates import Fragments
from gpus.models import Repartition
from registry.domain.approval import Approval
from registry.models import ModelImport, ModelVersion, RegisteredModel
from registry.services.governance import version_decide
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.pages import signed_in, text

pytestmark = pytest.mark.django_db

PAUSED = {"phase": Phase.PAUSED, "reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}


def part(page: str, name: str) -> str:
    return page.partition(f'id="home-{name}"')[2].partition("</section>")[0]


def ended(row: Rollout, code: Code, phase: Phase = Phase.DEGRADED, hours_ago: float = 1) -> None:
    fields = {"phase": phase, "reason_code": code, "reason_message": f"why {row.service.name} ended"}
    Rollout.objects.filter(pk=row.pk).update(finished_at=timezone.now() - timedelta(hours=hours_ago), **fields)


def test_without_a_service_it_says_what_to_do_next() -> None:
    page = text(signed_in(), "/")
    assert marked(page, "three-steps")
    for words in ("fairlead models push", "storageUri: models:/digits/1", "fairlead rollouts start"):
        assert words in page
    assert "done, " not in page
    scenes.model_version(1)
    assert "done, " in text(signed_in(), "/")


def test_signing_in_leads_there() -> None:
    assert signed_in().post("/signin/", {"token": scenes.token(name="other")})["Location"] == "/"


def test_a_rollout_in_progress_says_where_it_is_and_why_it_waits() -> None:
    row = scenes.rollout(scenes.service(), step_index=1)

    page = text(signed_in(Scope.WRITE), "/")

    rolling = part(page, "rolling")
    for words in (f"/rollouts/{row.pk}/", "Step 2 of 3, 25 %", "The canary has answered 200 requests at 25 %"):
        assert words in rolling
    assert marked(part(page, "waiting"), "nothing-waits")


def test_a_pause_waits_for_who_may_end_it_and_is_rolling_for_who_may_not() -> None:
    scenes.move(scenes.rollout(scenes.service()), step_index=1, **PAUSED)

    assert "Promote or abort" in part(text(signed_in(Scope.WRITE), "/"), "waiting")
    page = text(signed_in(Scope.READ), "/")
    assert "Promote or abort" not in page
    assert "Step 2 asks for a person" in part(page, "rolling")


def test_an_approval_waits_for_others_than_who_is_behind_the_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    pause = {"approvals": 1, "fourEyes": True, "expires": "24h"}
    monkeypatch.setitem(scenes.POLICY, "steps", [{"weight": 10, "pause": pause}, {"weight": 50}, {"weight": 60}])
    row = scenes.rollout(scenes.service(), phase=Phase.PAUSED)
    Rollout.objects.filter(pk=row.pk).update(authors=[{"actor": "write-user", "did": "started the rollout"}])

    mine, theirs = text(signed_in(Scope.WRITE), "/"), text(signed_in(Scope.ADMIN), "/")

    assert "Approve or reject" not in mine
    assert "Approve or reject" in part(theirs, "waiting")


def test_a_proposal_to_cut_gpus_anew_waits_for_administrators() -> None:
    scenes.service()
    row = scenes.repartition()

    waiting = part(text(signed_in(Scope.ADMIN), "/"), "waiting")

    assert f"Repartition of {row.node}" in waiting
    assert marked(waiting, "decide-cut")
    assert "Repartition" not in text(signed_in(Scope.WRITE), "/")
    Repartition.objects.update(phase="Draining")
    assert "Repartition" not in text(signed_in(Scope.ADMIN), "/")


def version_awaited(number: int = 1, model: str = "digits") -> ModelVersion:
    row = scenes.model_version(number, model)
    RegisteredModel.objects.filter(name=model).update(requires_approval=True)
    return row


def version_imported(row: ModelVersion, by: str) -> None:
    uri, now = "https://files.example/model.onnx", timezone.now()
    fields = {"status": "IMPORTED", "created_at": now, "created_by": by, "finished_at": now}
    ModelImport.objects.create(model=row.model.name, uri=uri, version=row, **fields)


def test_a_version_that_its_model_wants_approved_waits_for_deployers() -> None:
    version_awaited()

    waiting = part(text(signed_in(Scope.WRITE), "/"), "waiting")

    for words in ("digits version 1", 'href="/models/digits/versions/1/"', "Registered by test"):
        assert words in waiting
    assert marked(waiting, "decide-version")
    assert "1 version waits for your approval" in waiting
    assert not marked(text(signed_in(Scope.READ), "/"), "decide-version")


@pytest.mark.parametrize(
    ("of_model", "of_version"),
    [
        pytest.param({"requires_approval": False}, {}, id="its model asks for no approval"),
        pytest.param({}, {"status": "PENDING"}, id="it is checked yet"),
        pytest.param({}, {"status": "REJECTED"}, id="it cannot be served"),
        pytest.param({}, {"approval": "declined", "approval_at": timezone.now()}, id="somebody declined it"),
        pytest.param({}, {"created_by": "write-user (token ci)"}, id="the viewer registered it"),
    ],
)
def test_a_version_of_which_the_viewer_decides_nothing_is_not_there(
    of_model: dict[str, object], of_version: dict[str, object]
) -> None:
    row = version_awaited()
    RegisteredModel.objects.filter(pk=row.model_id).update(**of_model)
    ModelVersion.objects.filter(pk=row.pk).update(**of_version)
    assert not marked(text(signed_in(Scope.WRITE), "/"), "decide-version")


def test_a_version_does_not_wait_for_who_imported_its_files() -> None:
    version_imported(version_awaited(), by="write-user")
    assert not marked(text(signed_in(Scope.WRITE), "/"), "decide-version")
    assert marked(text(signed_in(Scope.ADMIN), "/"), "decide-version")


def test_a_version_waits_for_deployers_of_the_team_that_owns_its_model() -> None:
    version_awaited()
    scenes.token(Scope.ADMIN, "administrator")
    client, now = signed_in(Scope.WRITE), timezone.now()
    for team in ("blue", "red"):
        team_create(name=team, actor="test", now=now)
    ownership_set(team="blue", kind=Owned.MODEL, name="digits", actor="test", now=now)
    member_set(team="red", username="write-user", role=Role.DEPLOYER, actor="test", now=now)
    member_delete(team="default", username="write-user", actor="test", now=now)
    told = []
    for role in (None, Role.VIEWER, Role.DEPLOYER):
        if role is not None:
            member_set(team="blue", username="write-user", role=role, actor="test", now=now)
        told.append("digits version 1" in part(text(client, "/"), "waiting"))
    assert told == [False, False, True]


def test_the_newest_versions_to_approve_are_shown_and_no_more() -> None:
    for number in range(1, SHOWN + 3):
        version_awaited(number)

    waiting = part(text(signed_in(Scope.WRITE), "/"), "waiting")

    assert waiting.count("needs approval") == SHOWN
    assert f"digits version {SHOWN + 2}<" in waiting
    assert "digits version 2<" not in waiting


def test_a_version_approved_leaves_the_open_page() -> None:
    scenes.service("other", version=2)
    row = version_awaited()
    scenes.token(Scope.WRITE, "bob")
    token, fragments = ApiToken.objects.get(name="bob"), Fragments({}, seen=None)
    page = home_page(token)
    first = b"".join(fragments.changed(page))
    said = {"decision": Approval.APPROVED, "comment": "", "approver": Approver("alice"), "actor": "alice"}
    for number in (row.number, 2):
        version_decide(model="digits", number=number, now=timezone.now(), **said)

    later = home_page(token)
    changed = b"".join(fragments.changed(later))

    assert later.cursor != page.cursor
    assert b"digits version 1" in first
    assert b'id="home-waiting"' in changed
    assert b"digits version 1" not in changed


def test_what_broke_is_told_with_its_reason() -> None:
    scenes.service("fine")
    sick = scenes.service("sick")
    InferenceService.objects.filter(pk=sick.pk).update(phase="Degraded", reason="no replica of sick-00001 is ready")
    ended(scenes.rollout(scenes.service("failed")), Code.ANALYSIS_FAILED)
    Cluster.objects.update(problem="the agent told nothing for 10 s", silent_since=timezone.now())

    broken = part(text(signed_in(), "/"), "broken")

    for words in ("No replica of sick-00001 is ready", "Why failed ended", "The agent told nothing for 10 s"):
        assert words in broken
    assert "fine" not in broken


@pytest.mark.parametrize(
    ("code", "hours_ago"),
    [
        pytest.param(Code.ABORTED, 1, id="a person aborted it"),
        pytest.param(Code.ANALYSIS_FAILED, 25, id="it is long ago"),
    ],
)
def test_what_needs_nobody_any_more_is_not_broken(code: Code, hours_ago: float) -> None:
    ended(scenes.rollout(scenes.service()), code, Phase.ABORTED, hours_ago)
    assert marked(text(signed_in(), "/"), "nothing-broken")


def test_a_failed_rollout_that_another_one_followed_is_not_told_of() -> None:
    row = scenes.rollout(scenes.service())
    rollout_abort(rollout_id=row.pk, actor="alice", now=timezone.now())
    ended(row, Code.ANALYSIS_FAILED)
    scenes.rollout(row.service, version=3)
    assert marked(text(signed_in(), "/"), "nothing-broken")


def test_what_is_live_is_shown_in_part_and_counted_in_all() -> None:
    for number in range(SHOWN + 2):
        scenes.service(f"service-{number}")

    page = text(signed_in(), "/")

    assert part(page, "live").count("1 of 1") == SHOWN
    assert f"All {SHOWN + 2} services" in page
    assert f"<strong>{SHOWN + 2}</strong> live" in page


def stopped(name: str = "digits") -> None:
    scenes.service(name)
    service_stop(namespace="default", name=name, actor="test", now=timezone.now())


def test_that_services_are_stopped_is_told_with_the_way_to_them() -> None:
    stopped("first")
    live = part(text(signed_in(), "/"), "live")
    assert marked(live, "all-stopped")
    assert 'href="/services/?phase=Stopped">1 service</a> is stopped.' in live
    stopped("second")
    scenes.service("third")

    live = part(text(signed_in(), "/"), "live")

    assert "third" in live
    assert not marked(live, "all-stopped")
    assert 'href="/services/?phase=Stopped">2 services</a> are stopped.' in live


def test_without_a_live_service_nothing_is_said_of_what_it_had_before() -> None:
    InferenceService.objects.filter(pk=scenes.service().pk).update(phase="Degraded")
    page = text(signed_in(), "/")
    assert marked(part(page, "live"), "none-ready")
    assert "stopped" not in part(page, "live")


def test_the_count_of_what_is_rolling_is_that_of_its_panel() -> None:
    scenes.move(scenes.rollout(scenes.service("pending")), phase=Phase.PENDING)
    scenes.rollout(scenes.service("going"))
    scenes.move(scenes.rollout(scenes.service("paused")), step_index=1, **PAUSED)

    mine, others = text(signed_in(Scope.WRITE), "/"), text(signed_in(Scope.READ), "/")

    assert part(mine, "rolling").count('class="item"') == 2
    assert "<strong>2</strong> in progress" in mine
    assert part(others, "rolling").count('class="item"') == 3
    assert "<strong>3</strong> in progress" in others


def test_a_rollout_that_has_not_begun_has_no_bar_of_its_share() -> None:
    scenes.move(scenes.rollout(scenes.service()), phase=Phase.PENDING)
    client = signed_in()
    assert "Not begun" in part(text(client, "/"), "rolling")
    assert 'class="share"' not in text(client, "/") + text(client, "/services/")


def test_another_teams_services_are_nowhere_on_it() -> None:
    row = scenes.rollout(scenes.service("secret"))
    scenes.token(Scope.ADMIN, "administrator")
    client, now = signed_in(Scope.READ), timezone.now()
    team_create(name="blue", actor="test", now=now)
    member_set(team="blue", username="read-user", role=Role.VIEWER, actor="test", now=now)
    assert "secret" in text(client, "/")
    member_delete(team="default", username="read-user", actor="test", now=now)

    page = text(client, "/")

    assert "secret" not in page
    assert f"/rollouts/{row.pk}/" not in page
    assert "<strong>0</strong> live" in page


def test_who_may_act_in_which_namespaces_is_asked_once() -> None:
    scenes.token(Scope.ADMIN, "administrator")
    scenes.token(Scope.WRITE, "bob")
    now = timezone.now()
    for team, role in (("blue", Role.DEPLOYER), ("red", Role.VIEWER), ("green", None)):
        team_create(name=team, actor="test", now=now)
        ownership_set(team=team, kind=Owned.NAMESPACE, name=f"of-{team}", actor="test", now=now)
        if role is not None:
            member_set(team=team, username="bob", role=role, actor="test", now=now)
    member_delete(team="default", username="bob", actor="test", now=now)
    token = ApiToken.objects.get(name="bob")
    names = ["of-blue", "of-red", "of-green", "nobodys"]

    assert may_names(token, Scope.WRITE, Owned.NAMESPACE, names) == {"of-blue"}
    assert may_names(token, Scope.READ, Owned.NAMESPACE, names) == {"of-blue", "of-red"}
    assert may_names(token, Scope.ADMIN, Owned.NAMESPACE, names) == set()


def test_the_number_of_queries_does_not_grow(
    django_assert_num_queries: DjangoAssertNumQueries, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = signed_in()
    _one_of_each("a")
    with django_assert_max_num_queries(35) as shown:
        client.get("/")

    for name in ("b", "c"):
        _one_of_each(name)

    with django_assert_num_queries(len(shown)):
        client.get("/")


def _one_of_each(name: str) -> None:
    version_imported(version_awaited(model=f"awaited-{name}"), by="alice")
    scenes.rollout(scenes.service(f"rolling-{name}"))
    scenes.move(scenes.rollout(scenes.service(f"paused-{name}")), step_index=1, **PAUSED)
    ended(scenes.rollout(scenes.service(f"failed-{name}")), Code.ANALYSIS_FAILED)
    sick = scenes.service(f"sick-{name}")
    InferenceService.objects.filter(pk=sick.pk).update(phase="Degraded")
