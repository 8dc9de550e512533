"""Every operation of the OpenAPI document, asked by every role: an operation without a row in the table fails."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

import pytest
from django.test import override_settings
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, Identity
from accounts.services import teams, token_create, user_get_or_create
from common.uris import parse_prefixes
from events.services.subscriptions import webhook_test
from feedback.services.answers import KeepOrder, answers_keep
from feedback.services.scorers import scorer_set
from fleet.models import FleetUpgrade
from recordings.services.recordings import RecordingOrder, recording_start
from registry.models import KeptRules, ModelVersion
from registry.services import alias_set
from registry.services.imports import import_request
from sealed_secrets.services import secret_create
from tests import scenes

pytestmark = pytest.mark.django_db

# In which team the caller needs the role: the one that owns the object (red), the default team, or any.
OWNER, DEFAULT, ANY = "red", "default", "any"
VIEWER, DEPLOYER, ADMIN = Role.VIEWER, Role.DEPLOYER, Role.ADMIN
TABLE: dict[str, tuple[str, Role]] = {
    "GET /audit": (DEFAULT, ADMIN),
    "GET /audit/export": (DEFAULT, ADMIN),
    "GET /audit/verification": (DEFAULT, ADMIN),
    "GET /clusters": (ANY, VIEWER),
    "GET /clusters/{name}": (DEFAULT, ADMIN),
    "PUT /clusters/{name}": (DEFAULT, ADMIN),
    "DELETE /clusters/{name}": (DEFAULT, ADMIN),
    "GET /clusters/{name}/check": (DEFAULT, ADMIN),
    "GET /clusters/{name}/gpus": (DEFAULT, ADMIN),
    "GET /clusters/{name}/events": (ANY, VIEWER),
    "GET /clusters/{name}/repartitions": (DEFAULT, ADMIN),
    "POST /clusters/{name}/repartitions": (DEFAULT, ADMIN),
    "GET /clusters/{name}/repartitions/{repartition_id}": (DEFAULT, ADMIN),
    "POST /clusters/{name}/repartitions/{repartition_id}/approve": (DEFAULT, ADMIN),
    "POST /clusters/{name}/repartitions/{repartition_id}/decline": (DEFAULT, ADMIN),
    "POST /clusters/{name}/repartitions/{repartition_id}/abort": (DEFAULT, ADMIN),
    "GET /clusters/{name}/prices": (DEFAULT, ADMIN),
    "PUT /clusters/{name}/prices": (DEFAULT, ADMIN),
    "GET /fleet/services": (DEFAULT, ADMIN),
    "GET /fleet/upgrades": (DEFAULT, ADMIN),
    "POST /fleet/upgrades": (DEFAULT, ADMIN),
    "GET /fleet/upgrades/{upgrade_id}": (DEFAULT, ADMIN),
    "GET /fleet/upgrades/{upgrade_id}/services": (DEFAULT, ADMIN),
    "POST /fleet/upgrades/{upgrade_id}/pause": (DEFAULT, ADMIN),
    "POST /fleet/upgrades/{upgrade_id}/resume": (DEFAULT, ADMIN),
    "POST /fleet/upgrades/{upgrade_id}/cancel": (DEFAULT, ADMIN),
    "GET /issuers": (ANY, VIEWER),
    "POST /issuers": (DEFAULT, ADMIN),
    "GET /issuers/{name}": (ANY, VIEWER),
    "DELETE /issuers/{name}": (DEFAULT, ADMIN),
    "GET /keys": (ANY, VIEWER),
    "POST /keys": (OWNER, ADMIN),
    "GET /keys/{name}": (OWNER, VIEWER),
    "PATCH /keys/{name}": (OWNER, ADMIN),
    "DELETE /keys/{name}": (OWNER, ADMIN),
    "GET /keys/{name}/budget": (OWNER, VIEWER),
    "PUT /keys/{name}/budget": (OWNER, ADMIN),
    "POST /keys/{name}/rotate": (OWNER, ADMIN),
    "GET /secrets": (ANY, VIEWER),
    "POST /secrets": (OWNER, DEPLOYER),
    "GET /secrets/{namespace}/{name}": (OWNER, VIEWER),
    "PATCH /secrets/{namespace}/{name}": (OWNER, DEPLOYER),
    "DELETE /secrets/{namespace}/{name}": (OWNER, ADMIN),
    "GET /model-pools": (ANY, VIEWER),
    "GET /model-pools/{namespace}/{name}": (OWNER, VIEWER),
    "GET /model-pools/{namespace}/{name}/services": (OWNER, VIEWER),
    "GET /models": (ANY, VIEWER),
    "POST /models": (OWNER, DEPLOYER),
    "GET /models/{name}": (OWNER, VIEWER),
    "DELETE /models/{name}": (OWNER, DEPLOYER),
    "PATCH /models/{name}": (OWNER, DEPLOYER),
    "GET /models/{name}/aliases": (OWNER, VIEWER),
    "PUT /models/{name}/aliases/{alias}": (OWNER, DEPLOYER),
    "DELETE /models/{name}/aliases/{alias}": (OWNER, DEPLOYER),
    "PUT /models/{name}/aliases/{alias}/protection": (OWNER, ADMIN),
    "DELETE /models/{name}/aliases/{alias}/protection": (OWNER, ADMIN),
    "PUT /models/{name}/approval": (OWNER, ADMIN),
    "GET /kept-rules": (ANY, ADMIN),
    "GET /models/{name}/kept-rules": (OWNER, ADMIN),
    "DELETE /models/{name}/kept-rules": (OWNER, ADMIN),
    "GET /models/{name}/imports": (OWNER, VIEWER),
    "POST /models/{name}/imports": (OWNER, DEPLOYER),
    "GET /models/{name}/imports/{import_id}": (OWNER, VIEWER),
    "DELETE /models/{name}/imports/{import_id}": (OWNER, DEPLOYER),
    "GET /models/{name}/versions": (OWNER, VIEWER),
    "POST /models/{name}/versions": (OWNER, DEPLOYER),
    "POST /models/{name}/versions/check": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}": (OWNER, VIEWER),
    "DELETE /models/{name}/versions/{number}": (OWNER, DEPLOYER),
    "PATCH /models/{name}/versions/{number}": (OWNER, DEPLOYER),
    "PUT /models/{name}/versions/{number}/approval": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}/artifact": (OWNER, VIEWER),
    "POST /models/{name}/versions/{number}/recheck": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}/trials": (OWNER, VIEWER),
    "POST /models/{name}/versions/{number}/trials": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}/trials/{trial_id}": (OWNER, VIEWER),
    "DELETE /models/{name}/versions/{number}/trials/{trial_id}": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}/builds": (OWNER, VIEWER),
    "POST /models/{name}/versions/{number}/builds": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}/builds/{build_id}": (OWNER, VIEWER),
    "DELETE /models/{name}/versions/{number}/builds/{build_id}": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}/tunings": (OWNER, VIEWER),
    "POST /models/{name}/versions/{number}/tunings": (OWNER, DEPLOYER),
    "GET /models/{name}/versions/{number}/tunings/{tuning_id}": (OWNER, VIEWER),
    "DELETE /models/{name}/versions/{number}/tunings/{tuning_id}": (OWNER, DEPLOYER),
    "POST /models/{name}/versions/{number}/tunings/{tuning_id}/apply": (OWNER, DEPLOYER),
    "GET /storage": (ANY, VIEWER),
    "POST /storage/collect": (DEFAULT, ADMIN),
    "GET /policies": (ANY, VIEWER),
    "GET /policies/{name}": (ANY, VIEWER),
    "PUT /policies/{name}": (DEFAULT, DEPLOYER),
    "DELETE /policies/{name}": (DEFAULT, DEPLOYER),
    "GET /prometheus/targets": (ANY, VIEWER),
    "GET /rollouts/{rollout_id}": (OWNER, VIEWER),
    "GET /rollouts/{rollout_id}/comparison": (OWNER, VIEWER),
    "GET /rollouts/{rollout_id}/evidence": (OWNER, VIEWER),
    "POST /rollouts/{rollout_id}/abort": (OWNER, DEPLOYER),
    "GET /rollouts/{rollout_id}/approvals": (OWNER, VIEWER),
    "POST /rollouts/{rollout_id}/approvals": (OWNER, DEPLOYER),
    "DELETE /rollouts/{rollout_id}/approvals": (OWNER, DEPLOYER),
    "POST /rollouts/{rollout_id}/reject": (OWNER, DEPLOYER),
    "POST /rollouts/{rollout_id}/promote": (OWNER, DEPLOYER),
    "POST /rollouts/{rollout_id}/retry": (OWNER, DEPLOYER),
    "GET /services": (ANY, VIEWER),
    "GET /services/{namespace}/{name}": (OWNER, VIEWER),
    "PUT /services/{namespace}/{name}": (OWNER, DEPLOYER),
    "DELETE /services/{namespace}/{name}": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/budget": (OWNER, VIEWER),
    "PUT /services/{namespace}/{name}/budget": (OWNER, ADMIN),
    "GET /services/{namespace}/{name}/events": (OWNER, VIEWER),
    "GET /services/{namespace}/{name}/feedback/quality": (OWNER, VIEWER),
    "GET /services/{namespace}/{name}/feedback/answers": (OWNER, VIEWER),
    "PUT /services/{namespace}/{name}/feedback/answers": (OWNER, DEPLOYER),
    "DELETE /services/{namespace}/{name}/feedback/answers": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/feedback/drift": (OWNER, VIEWER),
    "POST /services/{namespace}/{name}/feedback/drift/accept": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/replicas/{replica}/metrics": (OWNER, VIEWER),
    "GET /services/{namespace}/{name}/feedback": (OWNER, VIEWER),
    "POST /services/{namespace}/{name}/feedback": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/feedback/scorers": (OWNER, VIEWER),
    "PUT /services/{namespace}/{name}/feedback/scorers/{scorer}": (OWNER, DEPLOYER),
    "DELETE /services/{namespace}/{name}/feedback/scorers/{scorer}": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/recordings": (OWNER, VIEWER),
    "POST /services/{namespace}/{name}/recordings": (OWNER, ADMIN),
    "GET /services/{namespace}/{name}/recordings/{recording_id}": (OWNER, VIEWER),
    "DELETE /services/{namespace}/{name}/recordings/{recording_id}": (OWNER, ADMIN),
    "POST /services/{namespace}/{name}/recordings/{recording_id}/stop": (OWNER, ADMIN),
    "GET /services/{namespace}/{name}/replays": (OWNER, VIEWER),
    "POST /services/{namespace}/{name}/replays": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/replays/{replay_id}": (OWNER, VIEWER),
    "POST /services/{namespace}/{name}/restart": (OWNER, DEPLOYER),
    "POST /services/{namespace}/{name}/resume": (OWNER, DEPLOYER),
    "POST /services/{namespace}/{name}/stop": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/revisions": (OWNER, VIEWER),
    "POST /services/{namespace}/{name}/rollback": (OWNER, DEPLOYER),
    "GET /services/{namespace}/{name}/rollouts": (OWNER, VIEWER),
    "GET /services/{namespace}/{name}/objectives": (OWNER, VIEWER),
    "GET /services/{namespace}/{name}/traffic": (OWNER, VIEWER),
    "POST /services/{namespace}/{name}/rollouts": (OWNER, DEPLOYER),
    "GET /users": (DEFAULT, ADMIN),
    "GET /users/{user}": (DEFAULT, ADMIN),
    "PATCH /users/{user}": (DEFAULT, ADMIN),
    "DELETE /users/{user}/identity": (DEFAULT, ADMIN),
    "POST /users/{user}/invitation": (DEFAULT, ADMIN),
    "GET /teams": (ANY, VIEWER),
    "POST /teams": (DEFAULT, ADMIN),
    "GET /teams/{team}": (OWNER, VIEWER),
    "DELETE /teams/{team}": (DEFAULT, ADMIN),
    "GET /teams/{team}/demand": (OWNER, VIEWER),
    "PUT /teams/{team}/demand": (OWNER, ADMIN),
    "GET /namespaces/{namespace}/demand": (OWNER, VIEWER),
    "PUT /namespaces/{namespace}/demand": (OWNER, ADMIN),
    "GET /teams/{team}/members": (OWNER, VIEWER),
    "GET /teams/{team}/quota": (OWNER, VIEWER),
    "PUT /teams/{team}/quota": (DEFAULT, ADMIN),
    "GET /teams/{team}/budget": (OWNER, VIEWER),
    "PUT /teams/{team}/budget": (DEFAULT, ADMIN),
    "GET /usage": (ANY, VIEWER),
    "GET /usage/export": (ANY, VIEWER),
    "PUT /teams/{team}/members/{user}": (OWNER, ADMIN),
    "DELETE /teams/{team}/members/{user}": (OWNER, ADMIN),
    "GET /teams/{team}/owned": (OWNER, VIEWER),
    "PUT /teams/{team}/namespaces/{name}": (DEFAULT, ADMIN),
    "DELETE /teams/{team}/namespaces/{name}": (DEFAULT, ADMIN),
    "PUT /teams/{team}/models/{name}": (DEFAULT, ADMIN),
    "DELETE /teams/{team}/models/{name}": (DEFAULT, ADMIN),
    "GET /tokens": (ANY, VIEWER),
    "POST /tokens": (DEFAULT, ADMIN),
    "GET /tokens/{token_id}": (ANY, VIEWER),
    "DELETE /tokens/{token_id}": (ANY, DEPLOYER),
    "GET /webhooks": (ANY, ADMIN),
    "POST /webhooks": (DEFAULT, ADMIN),
    "GET /webhooks/{webhook_id}": (OWNER, ADMIN),
    "PATCH /webhooks/{webhook_id}": (OWNER, ADMIN),
    "DELETE /webhooks/{webhook_id}": (OWNER, ADMIN),
    "GET /webhooks/{webhook_id}/deliveries": (OWNER, ADMIN),
    "GET /webhooks/{webhook_id}/deliveries/{delivery_id}": (OWNER, ADMIN),
    "POST /webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": (OWNER, ADMIN),
    "POST /webhooks/{webhook_id}/secret": (OWNER, ADMIN),
    "POST /webhooks/{webhook_id}/test": (OWNER, ADMIN),
    "GET /whoami": (ANY, VIEWER),
}
# What replicas ask with tokens of their clusters; no token of ours opens it.
OF_WORKLOADS = [
    "GET /clusters/{cluster}/workloads/artifacts/{digest}",
    "POST /clusters/{cluster}/workloads/exchanges",
    "GET /clusters/{cluster}/workloads/requests/{request_id}",
    "PUT /clusters/{cluster}/workloads/results/{result_id}",
]
BODIES: dict[str, dict[str, object]] = {
    "PATCH /webhooks/{webhook_id}": {"enabled": False},
    "POST /webhooks": {"url": "https://a.example/", "events": ["RolloutHealthy"]},
    "POST /keys": {"name": "batch", "team": "red", "services": ["default/*"]},
    "POST /issuers": {"name": "lab", "issuer": "https://id.lab", "audience": "m", "keys": scenes.PUBLIC_KEYS},
    "POST /secrets": {"name": "other", "values": {"token": "t"}},
    "PATCH /secrets/{namespace}/{name}": {"values": {"token": "u"}},
    "POST /models": {"name": "digits"},
    "POST /models/{name}/versions/check": {"files": [{"path": "model.onnx", "size_bytes": 1}]},
    "POST /models/{name}/versions/{number}/tunings": {"max_latency_p99_ms": 10},
    "POST /models/{name}/versions/{number}/tunings/{tuning_id}/apply": {"service": "default/digits"},
    "POST /models/{name}/imports": {"uri": "https://models.example.com/digits.onnx"},
    "PUT /services/{namespace}/{name}/feedback/scorers/{scorer}": {"kind": "accuracy"},
    "POST /services/{namespace}/{name}/replays": {"version": "models:/digits/1"},
    "POST /services/{namespace}/{name}/rollouts": {"version": "models:/digits/1"},
}
NAMES = {
    "cluster": "local",
    "digest": "sha256:0",
    "request_id": "00000000-0000-4000-8000-000000000000",
    "result_id": "00000000-0000-4000-8000-000000000000",
    "team": "red",
    "user": "carol",
    "namespace": "default",
    "alias": "champion",
    "number": "1",
    "replica": "digits-00001-0",
    "scorer": "right",
}


NAMES_OF = {
    "policies": "careful",
    "clusters": "local",
    "keys": "ci",
    "issuers": "corp",
    "secrets": "hub",
    "model-pools": "warm",
}


def operations() -> Iterator[str]:
    """Yield `GET /models/{name}` for every operation of the document, the document's own address left out."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    for path, item in schema["paths"].items():
        for method in item:
            if path != "/api/v1/schema/":
                yield f"{method.upper()} {path.removeprefix('/api/v1')}"


def test_every_operation_has_a_row_that_says_who_may() -> None:
    assert sorted(operations()) == sorted([*TABLE, *OF_WORKLOADS])


@pytest.fixture(scope="module")
def ids(standing_rows: Callable[[], AbstractContextManager[None]]) -> dict[str, int]:
    """Make things of every kind, team red's the service and its model; returns their keys by their names in paths."""
    with standing_rows(), override_settings(IMPORT_FROM=parse_prefixes(["https://models.example.com"])):
        return _everything(timezone.now())


def _everything(now: datetime) -> dict[str, int]:
    live = scenes.service()
    rollout = scenes.rollout(live)
    alias_set(model="digits", name="champion", number=1, now=now, actor="test")
    teams.team_create(name="red", actor="test", now=now)
    teams.team_create(name="blue", actor="test", now=now)
    teams.member_set(team="red", username="carol", role=VIEWER, actor="test", now=now)
    Identity.objects.create(
        user=user_get_or_create(username=NAMES["user"], now=now), issuer="https://id.example", subject="1"
    )
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=now)

    KeptRules.objects.create(name="digits", requires_approval=True, team="red", kept_at=now, kept_by="test")
    coming = import_request(model="digits", uri="https://models.example.com/digits.onnx", now=now, actor="test")
    order = RecordingOrder("The clients agreed to it in writing.")
    recording = recording_start(namespace="default", name="digits", order=order, actor="test", now=now)
    replay = scenes.replay(recording)
    answers_keep(namespace="default", name="digits", order=KeepOrder(), actor="test", now=now)
    scorer_set(namespace="default", name="digits", scorer="right", kind="accuracy", options={}, actor="test", now=now)
    repartition = scenes.repartition()
    upgrade = FleetUpgrade.objects.create(percent=25, at_once=5, created_at=now, created_by="test")
    tuning = scenes.tuning()
    build, trial = scenes.build(), scenes.trial()
    scenes.model_pool()
    scenes.access_key(team="red")
    scenes.issuer()
    secret_create(namespace="default", name="hub", values={"token": "t"}, actor="test", now=now)
    hook = scenes.webhook(team="red").webhook
    delivery = webhook_test(webhook_id=hook.pk, teams=None, actor="test", now=now)
    return {
        "rollout_id": rollout.pk,
        "webhook_id": hook.pk,
        "delivery_id": delivery.pk,
        "import_id": coming.pk,
        "recording_id": recording.pk,
        "replay_id": replay.pk,
        "repartition_id": repartition.pk,
        "upgrade_id": upgrade.pk,
        "tuning_id": tuning.pk,
        "build_id": build.pk,
        "trial_id": trial.pk,
    }


@pytest.fixture
def address(ids: dict[str, int], settings: Settings) -> Callable[[str], str]:
    """Return a maker of addresses of things that are all there."""
    settings.IMPORT_FROM = parse_prefixes(["https://models.example.com"])

    def make(operation: str) -> str:
        path = operation.split(" ")[1]
        of = path.split("/")[1]
        name = NAMES_OF.get(of, "default" if "/namespaces/" in path else "digits")
        token_id = ApiToken.objects.order_by("-id").values_list("pk", flat=True).first() or 0
        return "/api/v1" + path.format(**NAMES, **ids, name=name, token_id=token_id)

    return make


def client(role: Role | None, team: str, scope: Scope) -> APIClient:
    """Return a client of a user with one role in one team, or of none."""
    now = timezone.now()
    user = user_get_or_create(username="dora", default_role=None, now=timezone.now())
    if role is not None:
        if team == DEFAULT:
            user_get_or_create(username="root", now=timezone.now())  # makes the default team
        teams.member_set(team=team, username="dora", role=role, actor="test", now=now)
    created = token_create(user=user, name="dora", scope=scope, lifetime=timedelta(hours=1), now=now, actor="test")
    made = APIClient()
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {created.secret}")
    return made


def ask(caller: APIClient, operation: str, address: Callable[[str], str]) -> int:
    method = operation.split(" ", maxsplit=1)[0].lower()
    body = None if method == "get" else BODIES.get(operation, {})
    return int(getattr(caller, method)(address(operation), body).status_code)


@pytest.mark.parametrize("role", [None, *Role])
@pytest.mark.parametrize("operation", TABLE)
def test_the_role_in_the_right_team_decides(operation: str, role: Role | None, address: Callable[[str], str]) -> None:
    where, least = TABLE[operation]
    caller = client(role, "blue" if where == ANY else where, Scope.ADMIN)
    status = ask(caller, operation, address)
    if role is not None and role.scope.includes(least.scope):
        assert status not in (401, 403, 404)
    else:
        assert status in (403, 404)


@pytest.mark.parametrize("operation", [operation for operation, (where, _) in TABLE.items() if where != ANY])
def test_an_admin_of_another_team_gets_nowhere(operation: str, address: Callable[[str], str]) -> None:
    assert ask(client(Role.ADMIN, "blue", Scope.ADMIN), operation, address) in (403, 404)


@pytest.mark.parametrize("operation", TABLE)
def test_who_administers_the_installation_may_everything(operation: str, address: Callable[[str], str]) -> None:
    assert ask(client(Role.ADMIN, DEFAULT, Scope.ADMIN), operation, address) not in (401, 403, 404)


@pytest.mark.parametrize("operation", OF_WORKLOADS)
def test_what_is_for_replicas_is_for_nobody_else(operation: str, address: Callable[[str], str]) -> None:
    assert ask(client(Role.ADMIN, DEFAULT, Scope.ADMIN), operation, address) == 401
    assert ask(APIClient(), operation, address) == 401


@pytest.mark.parametrize("operation", TABLE)
def test_a_narrower_scope_than_the_role_decides(operation: str, address: Callable[[str], str]) -> None:
    narrower = {VIEWER: None, DEPLOYER: Scope.READ, ADMIN: Scope.WRITE}[TABLE[operation][1]]
    if narrower is not None:
        assert ask(client(Role.ADMIN, DEFAULT, narrower), operation, address) == 403
    assert ask(APIClient(), operation, address) == 401


@pytest.mark.parametrize(
    ("role", "status"),
    [
        pytest.param(VIEWER, 403, id="viewer"),
        pytest.param(DEPLOYER, 403, id="deployer"),
        pytest.param(ADMIN, 201, id="admin"),
    ],
)
def test_who_lets_a_rollout_break_clients_is_an_admin_of_the_services_team(
    role: Role, status: int, address: Callable[[str], str]
) -> None:
    scenes.model_version(3)
    ModelVersion.objects.filter(number=3).update(signature={"inputs": [], "outputs": []})
    wish = {"version": "3", "accept_contract_changes": True, "reason": "nobody calls it yet"}
    caller = client(role, OWNER, Scope.ADMIN)
    assert caller.post(address("POST /services/{namespace}/{name}/rollouts"), wish, format="json").status_code == status
