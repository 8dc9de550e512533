"""The running server against its own OpenAPI document: schemathesis makes requests from it and checks the answers.

Bounded to a few examples for each operation, the same ones in every run. Each operation is asked with made-up names and
with the names of things that are there.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import uvicorn
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck
from hypothesis import settings as bounds
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from common.uris import parse_prefixes
from deployments.models import Revision
from events.services.subscriptions import webhook_test
from feedback.services.answers import KeepOrder, answers_keep
from feedback.services.scorers import scorer_set
from fleet.models import FleetUpgrade
from fleet.services.upgrades import upgrade_start
from integrations.clusters.base import Component
from integrations.clusters.local.documents import cluster_status_to_json
from integrations.clusters.local.files import ClusterStatus, Layout, write_json
from recordings.services.recordings import RecordingOrder, recording_start
from registry.services import alias_set
from registry.services.imports import import_request
from tests import scenes

DEADLINE_S = 60.0
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BOUNDED = bounds(
    max_examples=6, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
DOCUMENT = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
# Everything at the edges of the document, other methods and broken values among it; then only what it allows.
edges, inside = schemathesis.openapi.from_dict(DOCUMENT), schemathesis.openapi.from_dict(DOCUMENT)
inside.config.phases.update(phases=["fuzzing"])
schemathesis.serializer.alias(["application/x-ndjson"], "text/plain")
schemathesis.serializer.alias(["application/vnd.apache.parquet"], "application/octet-stream")


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[str]:
    """Serve the control plane; yields its address."""
    from control_plane.asgi import application  # noqa: PLC0415 - needs Django's settings

    running = uvicorn.Server(uvicorn.Config(application, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])), name="server")
        thread.start()
        deadline = time.monotonic() + DEADLINE_S
        while not running.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        running.should_exit = True
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def _upgrade() -> FleetUpgrade:
    """Start an upgrade of the fleet, whose services are behind."""
    Revision.objects.update(template_changes="image a -> b")
    return upgrade_start(cluster="", namespace="", percent=25, at_once=5, actor="test", now=timezone.now())


@pytest.fixture
def there(
    server: str, transactional_db: None, settings: Settings, tmp_path: Path, api: Callable[..., APIClient]
) -> dict[str, Any]:
    """Return path parameters that name things which are there, and the header of an administrator."""
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    settings.CLUSTER_FOLDER = tmp_path / "cluster"
    tomorrow = time.time() + 86400  # never too old, however long a test takes
    agent = ClusterStatus(tomorrow, 1, "http://127.0.0.1:1", (Component("gateway", ready=True),))
    write_json(Layout(settings.CLUSTER_FOLDER).cluster_status, cluster_status_to_json(agent))
    live = scenes.service()
    rollout = scenes.rollout(live)
    scenes.model_pool("pooled")
    alias_set(model="digits", name="champion", number=1, now=live.created_at, actor="test")
    settings.IMPORT_FROM = parse_prefixes(["https://models.example.com"])
    coming = import_request(
        model="digits", uri="https://models.example.com/digits.onnx", now=live.created_at, actor="test"
    )
    order = RecordingOrder("The clients agreed to it in writing.")
    recording = recording_start(namespace="default", name="digits", order=order, actor="test", now=live.created_at)
    answers_keep(namespace="default", name="digits", order=KeepOrder(), actor="test", now=live.created_at)
    scorer_set(
        namespace="default",
        name="digits",
        scorer="right",
        kind="accuracy",
        options={},
        actor="test",
        now=live.created_at,
    )
    hook = scenes.webhook().webhook
    delivery = webhook_test(webhook_id=hook.pk, teams=None, actor="test", now=live.created_at)
    admin = api(Scope.ADMIN)
    admin.post("/api/v1/tokens", {"name": "spare"})
    return {
        "header": admin._credentials["HTTP_AUTHORIZATION"],
        "names": {
            "name": "digits",
            "namespace": "default",
            "alias": "champion",
            "number": 1,
            "replica": "digits-00001-0",
            "rollout_id": rollout.pk,
            "token_id": ApiToken.objects.get(name="spare").pk,
            "team": "default",
            "webhook_id": hook.pk,
            "delivery_id": delivery.pk,
            "import_id": coming.pk,
            "recording_id": recording.pk,
            "replay_id": scenes.replay(recording).pk,
            "tuning_id": scenes.tuning().pk,
            "build_id": scenes.build().pk,
            "trial_id": scenes.trial().pk,
            "request_id": "00000000-0000-4000-8000-000000000000",
            "result_id": "00000000-0000-4000-8000-000000000000",
            "repartition_id": scenes.repartition().pk,
            "upgrade_id": _upgrade().pk,
            "user": "alice",
            "scorer": "right",
            "cluster": "local",
            "digest": "sha256:" + "0" * 64,
        },
    }


def ask(case: Any, server: str, there: dict[str, Any]) -> None:
    headers = {"Authorization": there["header"]}
    case.call_and_validate(base_url=server, headers=headers, checks=CHECKS, timeout=DEADLINE_S)


@edges.parametrize()
@BOUNDED
@pytest.mark.django_db(transaction=True)
def test_made_up_requests_get_answers_of_the_documented_form(case: Any, server: str, there: dict[str, Any]) -> None:
    ask(case, server, there)


@inside.parametrize()
@BOUNDED
@pytest.mark.django_db(transaction=True)
def test_requests_for_what_is_there_get_answers_of_the_documented_form(
    case: Any, server: str, there: dict[str, Any]
) -> None:
    special = {"policies": "careful", "clusters": "local", "model-pools": "warm"}.get(case.path.split("/")[3])
    names = {**there["names"], **({"name": special} if special else {})}
    case.path_parameters = {name: names[name] for name in case.path_parameters or {}}
    ask(case, server, there)
