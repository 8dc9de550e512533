import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, Membership
from tests import scenes

Api = Callable[..., APIClient]
pytestmark = pytest.mark.django_db


def names(answer: object) -> list[str]:
    return [row["name"] for row in answer.json()["results"]]  # type: ignore[attr-defined]


@pytest.fixture
def admin(api: Api) -> APIClient:
    """Return the administrator's client, with a team red that owns the namespace of a service and its model."""
    client = api(Scope.ADMIN, "root")
    scenes.service()
    for path in ("namespaces/default", "models/digits"):
        assert client.post("/api/v1/teams", {"name": "red"}).status_code in (201, 409)
        assert client.put(f"/api/v1/teams/red/{path}").status_code == 201
    return client


def join(admin: APIClient, team: str, user: str, role: str) -> int:
    return int(admin.put(f"/api/v1/teams/{team}/members/{user}", {"role": role}).status_code)


def test_lists_have_what_the_caller_has_a_role_for(admin: APIClient, api: Api) -> None:
    assert join(admin, "red", "rita", "viewer") == 201
    rita, outsider = api(Scope.ADMIN, "rita"), api(Scope.ADMIN, "otto")
    join(admin, "default", "otto", "deployer")
    for path in ("models", "services"):
        assert names(rita.get(f"/api/v1/{path}")) == ["digits"]
        assert names(outsider.get(f"/api/v1/{path}")) == []
        assert names(admin.get(f"/api/v1/{path}")) == ["digits"]
    admin.post("/api/v1/models", {"name": "shared"})
    assert names(outsider.get("/api/v1/models")) == ["shared"]
    assert names(rita.get("/api/v1/models")) == ["digits"]
    assert names(rita.get("/api/v1/teams")) == ["red"]
    assert names(admin.get("/api/v1/teams")) == ["default", "red"]


def test_another_teams_model_cannot_be_served(admin: APIClient, api: Api) -> None:
    join(admin, "default", "otto", "deployer")
    otto = api(Scope.WRITE, "otto")
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    document = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "mine", "namespace": "others"},
        "spec": {"predictor": {"model": model}},
    }
    answer = otto.put("/api/v1/services/others/mine", document)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        404,
        "there is no model 'digits' that you may see",
    )
    assert admin.put("/api/v1/services/others/mine", document).status_code == 201


def test_pages_show_and_do_what_the_role_allows(admin: APIClient, api: Api, client: Client) -> None:
    join(admin, "default", "otto", "viewer")
    client.post("/signin/", {"token": scenes.token(Scope.ADMIN, "otto")})
    assert "/services/default/digits/" not in client.get("/services/").content.decode()
    assert client.get("/services/default/digits/").status_code == 404
    join(admin, "red", "otto", "viewer")
    assert "/services/default/digits/" in client.get("/services/").content.decode()
    page = client.get("/services/default/digits/")
    assert (page.status_code, page.context["may_write"]) == (200, False)
    rollout = scenes.rollout(scenes.service())
    assert client.post(f"/rollouts/{rollout.pk}/abort").status_code == 403
    join(admin, "red", "otto", "deployer")
    assert client.get("/services/default/digits/").context["may_write"] is True
    assert client.post(f"/rollouts/{rollout.pk}/abort").status_code == 302


def test_a_team_admin_decides_over_his_team_only(admin: APIClient, api: Api) -> None:
    join(admin, "red", "rita", "admin")
    rita = api(Scope.ADMIN, "rita")
    assert join(rita, "red", "new", "deployer") == 201
    assert join(rita, "red", "new", "viewer") == 200
    assert join(rita, "default", "rita", "admin") == 403
    assert rita.put("/api/v1/teams/red/namespaces/more").status_code == 403
    assert rita.delete("/api/v1/teams/red/members/new").status_code == 204
    assert rita.delete("/api/v1/teams/red/members/new").status_code == 404
    targets = AuditEntry.objects.filter(actor__startswith="rita").order_by("id")
    assert list(targets.values_list("action", "before", "after")) == [
        ("user.create", None, {"roles": {}}),
        ("member.set", None, {"role": "deployer"}),
        ("member.set", {"role": "deployer"}, {"role": "viewer"}),
        ("member.delete", {"role": "viewer"}, None),
    ]


def test_the_installation_keeps_an_administrator(admin: APIClient) -> None:
    for answer in (
        admin.delete("/api/v1/teams/default/members/root"),
        admin.put("/api/v1/teams/default/members/root", {"role": "viewer"}),
    ):
        assert answer.status_code == 409
        assert "last administrator" in answer.json()["error"]["message"]
    assert join(admin, "default", "second", "admin") == 201
    assert admin.delete("/api/v1/teams/default/members/root").status_code == 204


def test_a_team_goes_when_it_owns_nothing(admin: APIClient) -> None:
    refused = admin.delete("/api/v1/teams/red")
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        409,
        "team 'red' owns model digits, namespace default; give that to another team first",
    )
    assert [row["kind"] for row in admin.get("/api/v1/teams/red/owned?kind=model").json()["results"]] == ["model"]
    admin.post("/api/v1/teams", {"name": "blue"})
    assert admin.put("/api/v1/teams/blue/models/digits").status_code == 200
    assert admin.delete("/api/v1/teams/red/models/digits").status_code == 404
    assert admin.delete("/api/v1/teams/red/namespaces/default").status_code == 204
    assert admin.delete("/api/v1/teams/red").status_code == 204
    assert admin.delete("/api/v1/teams/default").status_code == 409


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("post", "teams", {"name": "Not A Label"}, id="a team that is no DNS label"),
        pytest.param("put", "teams/red/members/x", {"role": "king"}, id="a role that there is not"),
        pytest.param("put", "teams/red/namespaces/Bad_Name", {}, id="a namespace that is no DNS label"),
        pytest.param("put", "teams/red/models/!", {}, id="a model name that none may have"),
    ],
)
def test_wrong_requests_are_refused(admin: APIClient, method: str, path: str, body: dict[str, str]) -> None:
    assert getattr(admin, method)(f"/api/v1/{path}", body).status_code == 400


def test_who_has_no_role_is_told_so(api: Api, admin: APIClient) -> None:
    caller = api(Scope.READ, "nora")
    admin.delete("/api/v1/teams/default/members/nora")
    answer = caller.get("/api/v1/whoami")
    assert answer.status_code == 403
    assert "user 'nora' is no member" in answer.json()["error"]["message"]


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Do all of it at the same time, each in a thread of its own, and return the answers in the order of `acts`."""
    together = threading.Barrier(len(acts))

    def act(do: Callable[[], object]) -> object:
        together.wait()
        try:
            return do()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("way", ["taken out", "given less"])
def test_two_administrators_who_remove_each_other_leave_one(api: Api, way: str) -> None:
    names = ("ann", "bob")
    clients = {name: api(Scope.ADMIN, name) for name in names}

    def remove(by: str, whom: str) -> object:
        address = f"/api/v1/teams/default/members/{whom}"
        own = APIClient()
        own.credentials(**clients[by]._credentials)
        return (own.delete(address) if way == "taken out" else own.put(address, {"role": "viewer"})).status_code

    answers = at_once(lambda: remove("ann", "bob"), lambda: remove("bob", "ann"))

    left = Membership.objects.filter(team__name="default", role="admin")
    assert left.count() == 1
    # Who comes second is refused: he is the last one, or no administrator any more.
    assert sorted(answer in (200, 204) for answer in answers) == [False, True]
    assert set(answers) - {200, 204} <= {403, 404, 409}


@pytest.mark.django_db(transaction=True)
def test_a_team_that_is_made_by_several_at_once_is_there_once(api: Api) -> None:
    credentials = api(Scope.ADMIN)._credentials

    def make() -> object:
        own = APIClient()
        own.credentials(**credentials)
        return own.post("/api/v1/teams", {"name": "crowd"}).status_code

    assert sorted(map(str, at_once(make, make, make, make))) == ["201", "409", "409", "409"]
    assert AuditEntry.objects.filter(action="team.create", target="teams/crowd").count() == 1
