"""Tokens that renew themselves: of a file, and of an exec plugin, as an API server gets them."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from common.errors import InvalidInput, Unavailable
from integrations.clusters.kubernetes.access import ClusterInfo, ExecPlugin, KubeconfigFile
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.exec_plugin import known_token, token_of
from integrations.clusters.kubernetes.api.resource_types import CONFIG_MAP
from tests.integrations._support.api_servers import api_server
from tests.integrations._support.exec_plugins import V1, credential, printing, program, runs


@contextmanager
def reached(folder: Path, seen: list[str | None], refused: tuple[str, ...] = ()) -> Iterator[Path]:
    """Give the kubeconfig of a server that notes each request's token, and refuses some."""

    def answer(asked: object) -> None:
        token = asked.headers.get("Authorization")  # type: ignore[attr-defined]
        seen.append(token)
        status = 401 if token in refused else 200
        asked.say(status, {"message": "no"} if status == 401 else {"items": [], "metadata": {}})  # type: ignore[attr-defined]

    with api_server(folder, answer) as kubeconfig:
        yield kubeconfig


def test_a_token_file_that_is_replaced_takes_effect_without_a_restart(tmp_path: Path) -> None:
    seen: list[str | None] = []
    token = tmp_path / "token"
    token.write_text("first\n")
    with reached(tmp_path, seen) as kubeconfig:
        api = Api(KubeconfigFile(kubeconfig, token_file=str(token)))
        api.get(CONFIG_MAP, "default", "x")
        (tmp_path / "next").write_text("second\n")
        (tmp_path / "next").replace(token)  # as kubelets do
        api.get(CONFIG_MAP, "default", "x")
        token.unlink()
        with pytest.raises(Unavailable, match=r"the token file .*/token cannot be read: No such file"):
            api.get(CONFIG_MAP, "default", "x")
        api.close()
    assert seen == ["Bearer first", "Bearer second"]


def test_a_plugin_runs_once_until_its_token_is_about_to_end(tmp_path: Path) -> None:
    seen: list[str | None] = []
    plugin = ExecPlugin(str(printing(tmp_path, credential())))
    with reached(tmp_path, seen) as kubeconfig:
        api = Api(KubeconfigFile(kubeconfig, exec_plugin=plugin, runs_any=False))
        for _ in range(3):
            api.get(CONFIG_MAP, "default", "x")
        api.close()
    assert seen == ["Bearer from-the-plugin"] * 3
    assert runs(tmp_path) == 1
    known = known_token(plugin)
    assert known is not None
    assert known.expires_at is not None
    assert known.expires_at - known.renew_at == timedelta(minutes=2)


def test_a_token_that_ends_soon_is_made_again(tmp_path: Path) -> None:
    code = f"""
import datetime, json
open({str(tmp_path / "runs")!r}, "a").write("x")
end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(milliseconds=400)
status = {{"token": "short", "expirationTimestamp": end.isoformat()}}
print(json.dumps({{"apiVersion": {V1!r}, "kind": "ExecCredential", "status": status}}))
"""
    plugin = ExecPlugin(str(program(tmp_path, code)))
    first = token_of(plugin)
    assert first.expires_at is not None
    while token_of(plugin) is first:
        assert runs(tmp_path) == 1
    assert runs(tmp_path) == 2


def test_a_plugin_gets_the_cluster_and_none_of_our_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_SECRET_KEY", "ours")
    monkeypatch.setenv("DATABASE_URL", "ours")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/fairlead")
    code = (
        f"import os, json; json.dump(dict(os.environ), open({str(tmp_path / 'seen')!r}, 'w')); print({credential()!r})"
    )
    cluster = ClusterInfo("https://eu.example.com", "PEM", "kubernetes")
    plugin = ExecPlugin(str(program(tmp_path, code)), env=(("AWS_REGION", "eu-west-1"),), cluster=cluster)
    assert token_of(plugin).text == "from-the-plugin"
    found = json.loads((tmp_path / "seen").read_text())
    assert found["AWS_REGION"] == "eu-west-1"
    assert found["AWS_ROLE_ARN"] == "arn:aws:iam::1:role/fairlead"
    assert not {"FAIRLEAD_SECRET_KEY", "DATABASE_URL", "LD_PRELOAD"} & set(found)
    assert found["PATH"] != os.environ["PATH"]
    assert json.loads(found["KUBERNETES_EXEC_INFO"]) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://eu.example.com",
                "tls-server-name": "kubernetes",
                "certificate-authority-data": "UEVN",
            },
        },
    }


def test_without_the_right_to_run_programs_none_of_the_file_runs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    plugin = program(tmp_path, f"open({str(ran)!r}, 'w')")
    content = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [
            {"name": "it", "user": {"exec": {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1"}}}
        ],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(content))
    Api(KubeconfigFile(path, content=path.read_bytes(), runs_any=False)).close()
    assert not ran.exists()
    path.write_text("[]")
    with pytest.raises(InvalidInput, match="does not say how to reach a Kubernetes cluster"):
        Api(KubeconfigFile(path, runs_any=False))
