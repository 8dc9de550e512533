"""What was published as flaws of MLflow and KServe, tried on a control plane that serves over HTTP."""

import http.client
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import django.test
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from accounts.domain.scopes import Scope
from accounts.services import token_create, user_get_or_create
from common.uris import parse_prefixes
from events.models import WebhookDelivery
from events.tasks import deliver
from registry.models import ModelImport, ModelVersion, RegisteredModel
from registry.tasks import import_model
from tests.integrations._support.web_servers import WebServer, web_server
from tests.registry._support.model_files import store_folder

__all__ = ["store_folder"]

ONNX = b"some bytes of a model"
SECRET = b"what nobody may read"
UPWARDS = (
    "..",
    "../secret",
    "..\\secret",
    "\\..\\secret",
    "/etc/passwd",
    "file:///etc/passwd",
    "a/../../secret",
    "a#/../../secret",
    "a;/../../secret",
    "a?/../../secret",
    "%2e%2e/secret",
    "..%2fsecret",
    "%252e%252e%252fsecret",
    "a\0b",
    "a\nb",
    "",
    "x" * 300,
)


class Client:
    """Sends paths as they are, unlike clients that put them in order first."""

    def __init__(self, server: LiveServer, token: str) -> None:
        self._server = server.thread
        self.token = token

    def ask(
        self, method: str, path: str, body: bytes | dict[str, object] | None = None, **headers: str
    ) -> tuple[int, bytes]:
        """Return the status and the content of an answer."""
        kind = "application/octet-stream"
        if isinstance(body, dict):
            body, kind = json.dumps(body).encode(), "application/json"
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self._server.host, self._server.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host="Host" in sent)
            for name, value in {**sent, "Content-Length": str(len(body or b""))}.items():
                connection.putheader(name, value)
            connection.endheaders(body or b"")
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def push(self, content: bytes, filename: str, model: str = "digits") -> tuple[int, bytes]:
        return self.ask("POST", f"/api/v1/models/{model}/versions?filename={quote(filename, safe='')}", content)


@pytest.fixture
def client(transactional_db: None, live_server: LiveServer, store_folder: Path) -> Client:
    """The API over HTTP with an admin's token; its store is empty."""
    created = token_create(
        user=user_get_or_create(username="alice", now=timezone.now()),
        name="admin",
        scope=Scope.ADMIN,
        lifetime=timedelta(hours=1),
        now=timezone.now(),
        actor="test",
    )
    return Client(live_server, created.secret)


@pytest.fixture
def inside() -> Iterator[WebServer]:
    """A server of the inner network, which notes who asks it."""
    with web_server() as server:
        yield server


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.cve("CVE-2023-2780", "CVE-2023-6831", "CVE-2024-1593")
@pytest.mark.parametrize("name", UPWARDS, ids=lambda name: repr(name[:20]))
def test_a_name_is_no_path(client: Client, store_folder: Path, name: str) -> None:
    """Of a model in a body and in an address, and of a file."""
    assert client.ask("POST", "/api/v1/models", {"name": name})[0] == 400
    once = quote(name, safe="")
    for part in (once, quote(once, safe=""), name.replace("\0", "%00").replace("\n", "%0A")):
        if "?" not in part and part not in ("", ".."):
            status, _ = client.ask("POST", f"/api/v1/models/{part}/versions?filename=model.onnx", ONNX)
            assert status in (400, 404, 405), part
    assert client.push(ONNX, f"{name}/model.onnx")[0] == 400
    assert client.push(ONNX, f"{name}\\model.onnx")[0] == 400
    assert not RegisteredModel.objects.exists()
    assert not left(store_folder)


@pytest.mark.cve("CVE-2024-6838")
def test_a_name_is_not_without_end(client: Client) -> None:
    status, content = client.ask("POST", "/api/v1/models", {"name": "x" * 1_000_000, "description": "x" * 1_000_000})
    assert status == 400
    assert len(content) < 2000


def fetched(row: ModelImport) -> str:
    import_model(row.pk)
    row.refresh_from_db()
    return row.status


@pytest.mark.cve("CVE-2023-1177", "CVE-2023-6909", "CVE-2024-1558", "CVE-2024-2928", "CVE-2024-3848")
@pytest.mark.parametrize(
    "uri",
    [
        "{root}/../secret/model.onnx",
        "{root}/%2e%2e/secret/model.onnx",
        "{root}/%252e%252e/secret/model.onnx",
        "{root}/..%2fsecret/model.onnx",
        "{root}/\\..\\secret\\model.onnx",
        "{root}/#/../../secret/model.onnx",
        "{root}#/../secret/model.onnx",
        "{root}/;/../../secret/model.onnx",
        "{root}/?/../../secret/model.onnx",
        "{root}beside/model.onnx",
        "{root}/link/model.onnx",
        "{root}/link.onnx",
        "file://localhost{path}/../secret/model.onnx",
        "file:{path}/../secret/model.onnx",
        "{path}/../secret/model.onnx",
        "../secret/model.onnx",
        "models:/digits/1",
        "dbfs:/../secret/model.onnx",
        "mlflow-artifacts:/../secret/model.onnx",
        "file:///etc/passwd",
        "FILE:///proc/self/environ",
    ],
)
def test_a_source_leads_nowhere_but_where_the_operator_allows(
    client: Client, store_folder: Path, tmp_path: Path, settings: Settings, uri: str
) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    for folder in (root, secret, tmp_path / "rootbeside"):
        folder.mkdir()
        (folder / "model.onnx").write_bytes(ONNX if folder == root else SECRET)
    (root / "link").symlink_to(secret)
    (root / "link.onnx").symlink_to(secret / "model.onnx")
    settings.IMPORT_FROM = parse_prefixes([root.as_uri()])
    asked = {"uri": uri.format(root=root.as_uri(), path=root)}
    status, content = client.ask("POST", "/api/v1/models/digits/imports", asked)
    assert status in (202, 400), content
    for row in ModelImport.objects.all():  # what was let in by its text is refused as it is fetched
        assert fetched(row) == "FAILED", row.reason
        assert SECRET.decode() not in row.reason
    assert not ModelVersion.objects.exists()
    assert not left(store_folder)
    assert client.ask("POST", "/api/v1/models/digits/imports", {"uri": f"{root.as_uri()}/model.onnx"})[0] == 202
    assert fetched(ModelImport.objects.latest("id")) == "IMPORTED"


@pytest.mark.cve("CVE-2023-1177", "CVE-2023-6977", "CVE-2023-6909")
def test_a_download_is_the_versions_own_whatever_is_asked_beside(client: Client, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    assert client.push(ONNX, "model.onnx")[0] == 201
    address = "/api/v1/models/digits/versions/1/artifact"
    for query in (
        "path=../../secret",
        "path=/etc/passwd",
        "artifact_uri=file:///etc",
        "run_uuid=..;path=..%2f..%2fsecret",
    ):
        assert client.ask("GET", f"{address}?{query}") == (200, ONNX)
    for path in ("/../../secret", "/..%2f..%2fsecret", "/%252e%252e/secret", "/\\..\\secret"):
        status, content = client.ask("GET", address + path)
        assert status == 404
        assert SECRET not in content


@pytest.mark.cve(
    "CVE-2024-37052",
    "CVE-2024-37053",
    "CVE-2024-37054",
    "CVE-2024-37055",
    "CVE-2024-37056",
    "CVE-2024-37057",
    "CVE-2024-37058",
    "CVE-2024-37059",
    "CVE-2024-37060",
)
def test_files_that_hold_code_are_refused_by_name(client: Client, store_folder: Path) -> None:
    """Those of MLflow's flavours and Keras's: pickles, recipes, `.keras` and `.h5`."""
    for name in ("model.pkl", "python_model.pkl", "model.joblib", "model.pth", "card.pkl", "model.keras", "model.h5"):
        status, content = client.push(b"\x80\x04.", name)
        assert status == 400, name
        message = json.loads(content)["error"]["message"]
        assert "accepted are" in message or "is a pickle, which is code and is not taken" in message, name
        assert client.push(tar({f"1/{name}": b"\x80\x04.", "MLmodel": b"flavors: {}"}), "model.tar")[0] == 400
    assert not left(store_folder)


def tar(files: dict[str, bytes], *links: tuple[bytes, str, str]) -> bytes:
    """Return a tar archive of files and then links: the kind, the name, and what it leads to."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for kind, name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def zipped(files: dict[str, bytes], mode: int = 0) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
    return content.getvalue()


HONEST = {"1/model.onnx": ONNX}
SLIPPING = {
    "upwards": tar({**HONEST, "../evil": b"x"}),
    "upwards through a folder": tar({**HONEST, "1/../../evil": b"x"}),
    "absolute": tar({**HONEST, "/tmp/evil": b"x"}),
    "a link and a file through it": tar({**HONEST, "1/out/evil": b"x"}, (tarfile.SYMTYPE, "1/out", "/tmp")),
    "a link upwards": tar(HONEST, (tarfile.SYMTYPE, "1/out", "../../../..")),
    "a hard link to a file of the machine": tar(HONEST, (tarfile.LNKTYPE, "1/passwd", "/etc/passwd")),
    "a hard link upwards": tar(HONEST, (tarfile.LNKTYPE, "1/key", "../../secret-key")),
    "a device": tar(HONEST, (tarfile.CHRTYPE, "1/null", "")),
    "a pipe": tar(HONEST, (tarfile.FIFOTYPE, "1/pipe", "")),
    "zip slip": zipped({**HONEST, "../../evil": b"x"}),
    "zip slip with backslashes": zipped({**HONEST, "..\\..\\evil": b"x"}),
    "zip slip from the root": zipped({**HONEST, "/tmp/evil": b"x"}),
    "a link in a zip": zipped({**HONEST, "1/out": b"/etc"}, 0o120777),
}


@pytest.mark.cve("CVE-2007-4559")
@pytest.mark.parametrize("name", SLIPPING)
def test_an_archive_lays_nothing_outside_of_its_folder(
    client: Client, store_folder: Path, tmp_path: Path, name: str
) -> None:
    suffix = "zip" if "zip" in name else "tar"
    status, content = client.push(SLIPPING[name], f"model.{suffix}")
    assert status == 400, content
    assert not left(store_folder)
    assert not list(tmp_path.rglob("*evil*"))
    assert not Path("/tmp/evil").exists()


@pytest.mark.cve("CVE-2025-52967", "CVE-2026-2393")
def test_a_webhook_reaches_no_inner_network(client: Client, inside: WebServer, settings: Settings) -> None:
    inside.gives("/", b"{}")
    settings.EGRESS_ALLOWED_NETWORKS = ()
    port = inside.server_port
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0.0.0.0"):
        status, content = client.ask(
            "POST", "/api/v1/webhooks", {"url": f"http://{host}:{port}/", "events": ["RolloutHealthy"]}
        )
        if status == 201:
            client.ask("POST", f"/api/v1/webhooks/{json.loads(content)['id']}/test")
    for url in ("file:///etc/passwd", "gopher://127.0.0.1/", f"ftp://127.0.0.1:{port}/"):
        assert client.ask("POST", "/api/v1/webhooks", {"url": url, "events": ["RolloutHealthy"]})[0] == 400
    deliveries = list(WebhookDelivery.objects.all())
    assert deliveries
    for delivery in deliveries:
        deliver(delivery.pk)
        delivery.refresh_from_db()
        assert "not a public address" in delivery.answer or "resolved" in delivery.answer
    assert not inside.asked


@pytest.mark.cve("CVE-2025-14279")
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost@evil.example"]
)
def test_a_name_that_was_rebound_to_this_machine_gets_nothing(client: Client, host: str) -> None:
    for path in ("/api/v1/models", "/api/v1/webhooks", "/healthz", "/metrics", "/signin/", "/"):
        assert client.ask("GET", path, Host=host)[0] == 400, path
    assert client.ask("POST", "/api/v1/models", {"name": "digits"}, Host=host)[0] == 400
    assert not RegisteredModel.objects.exists()


@pytest.mark.cve("CVE-2025-1473", "CVE-2023-43472")
def test_another_sites_page_does_nothing_with_somebodys_session(client: Client, live_server: LiveServer) -> None:
    """A browser sends a form or a text of any site with the cookies of ours."""
    browser = Client(live_server, "")
    page = django.test.Client()
    page.post("/signin/", {"token": client.token})
    signed = "; ".join(f"{name}={cookie.value}" for name, cookie in page.cookies.items())
    status, _ = browser.ask("GET", "/models/", Authorization="", Cookie=signed)
    assert status == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
        cross = {"Cookie": signed, "Origin": "https://evil.example", "Content_Type": kind}
        assert browser.ask("POST", "/api/v1/models", b'{"name": "digits"}', Authorization="", **cross)[0] in (401, 403)
        assert browser.ask("POST", "/models/digits/delete", b"name=digits", Authorization="", **cross)[0] == 403
        assert browser.ask("POST", "/signin/", b"token=x", Authorization="", **cross)[0] == 403
    assert not RegisteredModel.objects.exists()
