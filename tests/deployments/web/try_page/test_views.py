"""The page on which a version is tried; a server of the test stands where the gateway is."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from joserfc import jwt
from joserfc.jwk import KeySet
from pytest_django.fixtures import Settings

from access.services.gateways import caller_keys
from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services import teams
from deployments.models import InferenceService
from deployments.services import service_stop
from integrations.clusters.base import CONSOLE
from integrations.v2.tensors import MOST_BYTES
from registry.models import ModelVersion
from registry.storage import store
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from tests.deployments._support.platform import Platform

PAGE = "/models/digits/versions/1/try/"
ROW = {"service": "default/digits", "data-0": "[[1, 2, 3, 4]]"}
LABEL = {"name": "label", "datatype": "INT64", "shape": [1], "data": [7]}
SCORES = {"name": "scores", "datatype": "FP32", "shape": [1, 3], "data": [0.1, 0.7, 0.2]}


class Gateway:
    """Answers each request with the next of `answers`, a status and a body, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.keys: list[str] = []
        self.answers: list[tuple[int, bytes]] = []
        self.let_go = threading.Event()
        self.is_silent = False

    def handler(self) -> type[BaseHTTPRequestHandler]:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                gateway.asked.append((self.path, json.loads(body)))
                gateway.keys.append(self.headers.get("Authorization", ""))
                if gateway.is_silent:
                    gateway.let_go.wait(60)
                    return
                status, answer = gateway.answers.pop(0)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.send_header("fairlead-revision", "digits-00001")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


@pytest.fixture
def gateway(settings: Settings) -> Iterator[Gateway]:
    """Serve where the settings say that the gateway is."""
    made = Gateway()
    with ThreadingHTTPServer(("127.0.0.1", 0), made.handler()) as server:
        thread = threading.Thread(target=server.serve_forever, name="gateway")
        thread.start()
        settings.GATEWAY_URL = f"http://127.0.0.1:{server.server_port}"
        yield made
        made.let_go.set()
        server.shutdown()
        thread.join(60)


@pytest.fixture
def service(platform: Platform) -> InferenceService:
    return scenes.service()


def send(client: Client, **more: str) -> str:
    answer = client.post(f"{PAGE}send", {**ROW, **more}, headers={"HX-Request": "true"})
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def told(*outputs: dict[str, object]) -> tuple[int, bytes]:
    return 200, json.dumps({"model_name": "digits", "model_version": "1", "outputs": outputs}).encode()


def test_the_page_has_an_example_and_the_code_for_it(browser: Browser, service: InferenceService) -> None:
    shown = page(browser(), PAGE)
    assert "[[0.0, 0.0, 0.0, 0.0]]" in shown
    assert "/serving/default/digits/v2/models/digits/versions/1/infer" in shown
    assert "Send it" in shown


def test_a_stopped_service_is_said_to_be_so_to_who_may_see_it(browser: Browser, service: InferenceService) -> None:
    asked = f"{PAGE}?service=default/digits"
    service_stop(namespace="default", name="digits", actor="alice", now=timezone.now())

    assert browser("red").get(asked).status_code == 404
    client = browser()
    answer = client.get(asked)

    assert answer.status_code == 409
    assert "ervice default/digits is stopped, so it answers nothing; resume it" in answer.content.decode()
    assert client.get(f"{PAGE}?service=default/other").status_code == 404


def test_the_answer_of_the_service_is_shown(browser: Browser, service: InferenceService, gateway: Gateway) -> None:
    gateway.answers = [told(LABEL, SCORES)]
    shown = send(browser("default", Role.DEPLOYER, Scope.WRITE))
    ((path, asked),) = gateway.asked
    assert path == "/serving/default/digits/v2/models/digits/versions/1/infer"
    assert asked["inputs"] == [{"name": "image", "datatype": "FP32", "shape": [1, 4], "data": [[1, 2, 3, 4]]}]
    for text in ("[7]", "70.0", "digits-00001", " ms"):
        assert text in shown
    assert not AuditEntry.objects.filter(actor__contains="dora", action__contains="try").exists()


def test_a_service_that_asks_for_keys_is_called_with_one_for_it_alone(
    browser: Browser, service: InferenceService, gateway: Gateway
) -> None:
    gateway.answers = [told(LABEL), told(LABEL)]
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    send(client)
    InferenceService.objects.update(access={"keys": ["ci"]})
    shown = send(client)
    public, key = gateway.keys
    assert public == ""
    keys = KeySet.import_key_set({"keys": [dict(each) for each in caller_keys(now=timezone.now()).public]})
    claims = jwt.decode(key.removeprefix("Bearer "), keys, algorithms=["ES256"]).claims
    assert (claims["sub"], claims["services"]) == (CONSOLE, ["default/digits"])
    assert claims["exp"] - claims["iat"] == 300
    assert key not in shown
    assert shown.count("FAIRLEAD_KEY") == 3, "each of the three ways to call it says where the key comes from"


def test_classes_have_the_labels_of_the_versions_files(
    browser: Browser, service: InferenceService, gateway: Gateway, settings: Settings, tmp_path: Path
) -> None:
    settings.ARTIFACTS_FOLDER = tmp_path
    folder = store().path_of(ModelVersion.objects.get(number=1).digest)
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text('output { name: "scores" label_filename: "labels.txt" }')
    (folder / "labels.txt").write_text("great white shark\ncat <b>\n")
    gateway.answers = [told(SCORES)]
    shown = send(browser())
    assert '<span class="label">cat &lt;b&gt;</span> <span class="faint">1</span>' in shown
    assert "great white shark" in shown
    assert '<th scope="row">2</th>' in shown  # more classes than labels


def test_what_the_runtime_says_comes_in_its_words(
    browser: Browser, service: InferenceService, gateway: Gateway
) -> None:
    gateway.answers = [(400, b'{"error": "input image has shape [1,3], expected [-1,4]"}')]
    shown = send(browser())
    assert "The service answered 400: input image has shape [1,3], expected [-1,4]" in shown
    assert "curl" in shown


def test_an_answer_that_does_not_come_is_not_waited_for(
    browser: Browser, service: InferenceService, gateway: Gateway, settings: Settings
) -> None:
    settings.TRY_TIMEOUT_S = 1
    gateway.is_silent = True
    assert "No answer came within 1 s" in send(browser())


def test_an_answer_that_is_too_large_is_not_read(browser: Browser, service: InferenceService, gateway: Gateway) -> None:
    gateway.answers = [(200, bytes(MOST_BYTES + 1))]
    assert "The answer has more than the" in send(browser())


def test_an_answer_that_is_no_v2_is_told(browser: Browser, service: InferenceService, gateway: Gateway) -> None:
    gateway.answers = [(200, b"<html>")]
    assert "no JSON that can be read" in send(browser())


def test_a_gateway_that_is_away_is_told(browser: Browser, service: InferenceService, settings: Settings) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:1"
    assert "did not answer" in send(browser())


def test_a_form_that_cannot_be_sent_is_not(browser: Browser, service: InferenceService, gateway: Gateway) -> None:
    assert "Input image: that is not JSON" in send(browser(), **{"data-0": "[1, "})
    assert gateway.asked == []


@pytest.mark.parametrize(
    ("who", "status"),
    [
        pytest.param(("default", Role.VIEWER, Scope.ADMIN), 403, id="a viewer"),
        pytest.param(("default", Role.DEPLOYER, Scope.READ), 403, id="a narrow token"),
        pytest.param(("red", Role.ADMIN, Scope.ADMIN), 404, id="another team"),
    ],
)
def test_who_may_not_deploy_there_sends_nothing(
    browser: Browser, service: InferenceService, gateway: Gateway, who: tuple[str, Role, Scope], status: int
) -> None:
    assert browser(*who).post(f"{PAGE}send", ROW).status_code == status
    assert gateway.asked == []


def test_a_viewer_sees_form_and_code_and_why_not_the_button(browser: Browser, service: InferenceService) -> None:
    shown = page(browser("default", Role.VIEWER, Scope.READ), PAGE)
    assert "Send it" not in shown
    assert marked(shown, "needs-deployer")
    assert "tritonclient" in shown


def test_a_service_of_another_team_is_neither_shown_nor_asked(
    browser: Browser, service: InferenceService, gateway: Gateway
) -> None:
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=timezone.now())
    deployer = browser("default", Role.DEPLOYER, Scope.WRITE)
    shown = page(deployer, PAGE)
    assert "default/digits" not in shown
    assert marked(shown, "not-live")
    assert deployer.post(f"{PAGE}send", ROW).status_code == 404
    assert gateway.asked == []


@pytest.mark.parametrize("named", ["http://127.0.0.1:9/", "default/../digits", "default/other"])
def test_only_services_of_the_version_are_asked(
    browser: Browser, service: InferenceService, gateway: Gateway, named: str
) -> None:
    assert browser().post(f"{PAGE}send", {**ROW, "service": named}).status_code == 404
    assert gateway.asked == []


def test_a_version_that_is_live_nowhere_offers_to_be_deployed(browser: Browser, service: InferenceService) -> None:
    scenes.model_version(2)
    shown = page(browser(), "/models/digits/versions/2/try/")
    assert marked(shown, "not-live")
    assert 'href="/deploy/digits/2/"' in shown
    assert browser().post("/models/digits/versions/2/try/send", {"data-0": "[]"}).status_code == 404


def test_a_version_without_a_signature_says_so(browser: Browser, service: InferenceService) -> None:
    ModelVersion.objects.update(signature={}, status="PENDING")
    assert marked(page(browser(), PAGE), "not-ready")


def test_a_long_request_is_a_file(browser: Browser, service: InferenceService) -> None:
    inputs = [{"name": "image", "datatype": "FP32", "shape": [-1, 5000]}]
    ModelVersion.objects.update(signature={"inputs": inputs, "outputs": []})
    client = browser("default", Role.VIEWER, Scope.READ)
    assert "@request.json" in page(client, PAGE)
    answer = client.post(f"{PAGE}request.json", {"data-0": ""})
    assert answer.headers["Content-Disposition"] == 'attachment; filename="request.json"'
    assert answer.json()["inputs"][0]["data"] == [0.0] * 5000
    assert client.post(f"{PAGE}request.json", {"data-0": "[1]"}).status_code == 400


def test_the_page_asks_the_same_number_of_queries_for_many_services(
    browser: Browser, service: InferenceService
) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            page(client, PAGE)
        return len(seen)

    one = queries()
    for number in range(4):
        scenes.service(f"digits-{number}")
    assert queries() == one


def test_the_pages_of_version_and_service_lead_there(browser: Browser, service: InferenceService) -> None:
    assert f'href="{PAGE}"' in page(browser(), "/models/digits/versions/1/")
    assert f'href="{PAGE}?service=default/digits"' in page(browser(), "/services/default/digits/")


def test_a_form_that_is_too_large_is_refused_in_words(
    browser: Browser, service: InferenceService, gateway: Gateway
) -> None:
    form = urlencode({**ROW, "data-0": "1" * (3 << 20)})
    sent = {"content_type": "application/x-www-form-urlencoded", "headers": {"HX-Request": "true"}}
    answer = browser().post(f"{PAGE}send", form, **sent)
    assert (answer.status_code, answer.headers["HX-Retarget"]) == (413, "#notices")
    assert "is too large; a form has at most 2097152 bytes" in answer.content.decode()
    assert gateway.asked == []
