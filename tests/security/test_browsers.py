"""Pages of other sites in a browser on the same machine: what they can send, and what they get back.

A browser sends simple requests to any address for any page, with a foreign `Origin`; a page whose name is bound to
127.0.0.1 afterwards (DNS rebinding) sends them with a foreign `Host` and may read the answers.
"""

import json
import runpy
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from tests import scenes
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import ServerProcess, server

FOREIGN = "http://attacker.example"
INFER = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
SIMPLE_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
"""What a page may send as without asking first (Fetch: CORS-safelisted request headers)."""


def signed_in() -> Client:
    browser = Client(enforce_csrf_checks=True)
    browser.get("/signin/")
    form = {"token": scenes.token(), "csrfmiddlewaretoken": browser.cookies["csrftoken"].value}
    assert browser.post("/signin/", form).status_code == 302
    return browser


@pytest.mark.django_db
class TestControlPlane:
    @pytest.mark.parametrize("path", ["/", "/signin/", "/api/v1/clusters", "/healthz", "/metrics", "/stream"])
    def test_a_name_that_is_not_its_own_is_refused(self, path: str) -> None:
        assert signed_in().get(path, headers={"Host": "attacker.example:8080"}).status_code == 400

    def test_a_form_of_another_origin_is_refused_though_it_has_the_token(self) -> None:
        browser = signed_in()
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"].value}
        assert browser.post("/signout/", form, headers={"Origin": FOREIGN}).status_code == 403
        assert browser.get("/").status_code == 200

    @pytest.mark.parametrize("content_type", [*SIMPLE_TYPES, "application/json"])
    def test_the_session_alone_writes_nothing_by_the_api(self, content_type: str) -> None:
        answer = signed_in().post(
            "/api/v1/clusters/local/check", "{}", content_type=content_type, headers={"Origin": FOREIGN}
        )
        assert answer.status_code == 403
        assert "CSRF" in answer.content.decode()

    def test_cookies_stay_with_the_site(self) -> None:
        browser = signed_in()
        assert {browser.cookies[name]["samesite"] for name in ("sessionid", "csrftoken")} == {"Lax"}
        assert browser.cookies["sessionid"]["httponly"]

    @pytest.mark.parametrize("path", ["/", "/api/v1/clusters"])
    def test_no_other_origin_may_read_an_answer(self, path: str) -> None:
        answer = signed_in().get(path, headers={"Origin": FOREIGN})
        assert answer.status_code == 200
        assert not _allows(answer)


def behind(url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the settings that a control plane with this public address has."""
    monkeypatch.setenv("FAIRLEAD_URL", url)
    return runpy.run_path(str(find_spec("control_plane.settings").origin))  # type: ignore[union-attr, arg-type]


@pytest.mark.django_db
class TestControlPlaneBehindTls:
    """Headers and cookies, which do not depend on whether the proxy's headers are believed."""

    @pytest.fixture(autouse=True)
    def https(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        made = behind("https://fairlead.example", monkeypatch)
        for name in ("SECURE_COOKIES", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
            assert made[name] is True
        for name in made:
            if name.startswith(("SECURE_", "SESSION_", "CSRF_")):
                setattr(settings, name, made[name])

    @pytest.mark.parametrize("path", ["/", "/signin/", "/api/v1/clusters", "/nothing", "/static/app.css", "/healthz"])
    def test_browsers_come_back_over_tls_only(self, path: str) -> None:
        assert Client().get(path).headers["Strict-Transport-Security"] == "max-age=31536000"

    def test_a_refused_name_says_so_too(self) -> None:
        answer = Client().get("/", headers={"Host": "attacker.example"})
        assert (answer.status_code, answer.headers["Strict-Transport-Security"]) == (400, "max-age=31536000")

    def test_no_other_name_of_the_domain_can_set_the_cookies(self) -> None:
        browser = Client(enforce_csrf_checks=True)
        browser.get("/signin/")
        form = {"token": scenes.token(), "csrfmiddlewaretoken": browser.cookies["__Host-csrftoken"].value}
        assert (
            browser.post("/signin/", form, secure=True, headers={"Referer": "https://testserver/"}).status_code == 302
        )
        assert {*browser.cookies} == {"__Host-sessionid", "__Host-csrftoken"}
        for cookie in browser.cookies.values():
            assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
        assert browser.get("/").status_code == 200
        planted = Client()
        planted.cookies["sessionid"] = browser.cookies["__Host-sessionid"].value
        assert planted.get("/").status_code == 302


def test_over_plain_http_nothing_is_said_of_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    made = behind("http://127.0.0.1:8080", monkeypatch)
    assert (made["SESSION_COOKIE_NAME"], made["CSRF_COOKIE_NAME"]) == ("sessionid", "csrftoken")
    assert "Strict-Transport-Security" not in Client().get("/healthz").headers


def test_the_name_of_djangos_tests_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "testserver" not in behind("https://fairlead.example", monkeypatch)["ALLOWED_HOSTS"]


def _allows(answer: HttpResponse) -> bool:
    return any(name.lower().startswith("access-control-") for name in answer.headers)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root: Path = tmp_path_factory.mktemp("repository")
    onnx_models.identity(root / "m" / "1" / "model.onnx")
    with server(root, "--allow-control-calls=false", scratch=tmp_path_factory.mktemp("ports")) as process:
        yield process


class TestRuntime:
    """What docs/reference/threat-model.md says of it: it answers any `Host`, and simple requests."""

    @pytest.mark.parametrize("content_type", SIMPLE_TYPES)
    def test_a_page_may_ask_and_not_read(self, runtime: ServerProcess, content_type: str) -> None:
        headers = {"Content-Type": content_type, "Origin": FOREIGN}
        answer = httpx.post(f"{runtime.url}/v2/models/m/infer", content=json.dumps(INFER), headers=headers)
        assert answer.status_code == 200
        assert not [name for name in answer.headers if name.startswith("access-control-")]

    def test_a_name_that_was_bound_to_it_reads(self, runtime: ServerProcess) -> None:
        answer = httpx.get(f"{runtime.url}/v2/models/m", headers={"Host": "attacker.example"})
        assert (answer.status_code, answer.json()["name"]) == (200, "m")

    def test_what_a_browser_asks_for_first_is_not_allowed(self, runtime: ServerProcess) -> None:
        headers = {"Origin": FOREIGN, "Access-Control-Request-Method": "POST"}
        answer = httpx.options(f"{runtime.url}/v2/models/m/infer", headers=headers)
        assert not answer.is_success
        assert not [name for name in answer.headers if name.startswith("access-control-")]

    def test_a_page_controls_no_replica(self, runtime: ServerProcess) -> None:
        headers = {"Content-Type": "text/plain", "Origin": FOREIGN}
        answer = httpx.post(f"{runtime.url}/v2/repository/models/m/unload", content="{}", headers=headers)
        assert not answer.is_success
        assert httpx.get(f"{runtime.url}/v2/models/m/ready").status_code == 200
