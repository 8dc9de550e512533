"""`fairlead clusters join`, with a program in the place of kubectl; with kubectl: `tests/cluster/test_join.py`."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Fairlead = Callable[..., tuple[int, str, str]]
FILE = "gateway: {url: 'https://models.example.com', name: models, namespace: gateways}\njobs: {namespace: checks}\n"
CLUSTER = {"name": "eu", "kind": "kubernetes", "components": [], "checked_at": None, "problem": "", "services": []}
FOUND = {"name": "eu", "ok": True, "findings": [{"about": "API server", "ok": True, "message": "v1", "remedy": ""}]}
MINE = {
    "clusters": [{"name": "kind", "cluster": {"server": "https://127.0.0.1:6443"}}],
    "users": [{"user": {"token": "mine"}}],
}
KUBECTL = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
words = [word for word in sys.argv[1:] if not word.startswith("--context")]
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if words[0] == "apply":
    (here / "applied").write_text(sys.stdin.read())
elif words[0] == "config":
    print({json.dumps(MINE)!r})
elif (here / "fails").exists():
    sys.exit("error: serviceaccounts is forbidden:\\x1b[2J you may not")
elif not (here / "was-asked").exists():
    (here / "was-asked").touch()
    sys.exit('Error from server (NotFound): serviceaccounts "control-plane" not found')
else:
    print("token-of-the-account")
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_home: Path) -> Path:
    """Put a program in the place of kubectl; returns its folder."""
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (at_home / "eu.yaml").write_text(FILE)
    return tmp_path


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def test_what_a_cluster_needs_is_printed_and_nothing_is_asked(fairlead: Fairlead, api: Any, kubectl: Path) -> None:
    code, said, _ = fairlead("clusters", "join", "eu", "-f", "eu.yaml", "--namespace", "vision", "--namespace", "text")
    made = list(yaml.safe_load_all(said))
    assert code == 0
    names = [each["metadata"]["name"] for each in made if each["kind"] == "Namespace"]
    assert names == ["fairlead-access", "vision", "text", "checks"]
    assert not (kubectl / "calls").exists()
    assert api.seen == []
    code, said, _ = fairlead("clusters", "join", "eu", "-f", "eu.yaml", "-o", "json")
    assert (code, json.loads(said)[1]["metadata"]["name"]) == (0, "models")


def test_a_cluster_is_made_ready_and_registered_without_the_caller_s_credentials(
    fairlead: Fairlead, api: Any, kubectl: Path
) -> None:
    api.on("PUT /clusters/eu", CLUSTER, status=201)
    api.on("GET /clusters/eu/check?namespace=vision", FOUND)
    code, said, errors = fairlead(
        *("clusters", "join", "eu", "-f", "eu.yaml", "--namespace", "vision", "--apply"),
        *("--context", "kind-eu", "--server", "https://eu.example.com:6443"),
    )
    assert (code, "API server" in said) == (0, True), errors
    sent = api.seen[0].document
    assert sent["connection"]["kubeconfig"] == {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fairlead",
        "clusters": [{"name": "fairlead", "cluster": {"server": "https://eu.example.com:6443"}}],
        "users": [{"name": "fairlead", "user": {"token": "token-of-the-account"}}],
        "contexts": [{"name": "fairlead", "context": {"cluster": "fairlead", "user": "fairlead"}}],
    }
    assert (sent["name"], sent["kind"], sent["jobs"]) == ("eu", "kubernetes", {"namespace": "checks"})
    assert "token-of-the-account" not in said + errors
    assert {each[0] for each in calls(kubectl)} == {"--context=kind-eu"}
    assert [each[1] for each in calls(kubectl)] == ["apply", "config", "create", "create"], "it waits for the account"
    assert len(list(yaml.safe_load_all((kubectl / "applied").read_text()))) > 10


def test_only_the_registration_applies_nothing(fairlead: Fairlead, api: Any, kubectl: Path) -> None:
    api.on("PUT /clusters/eu", CLUSTER)
    api.on("GET /clusters/eu/check?namespace=models", {**FOUND, "ok": False})
    code, said, errors = fairlead(
        *("clusters", "join", "eu", "-f", "eu.yaml", "--register", "--account", "fairlead/robot", "-o", "json")
    )
    assert (code, json.loads(said)["cluster"]["name"]) == (1, "eu")
    assert "needs the remedies above" in errors
    assert ["create", "token", "robot", "--namespace=fairlead", "--duration=8760h"] in calls(kubectl)
    assert not (kubectl / "applied").exists()


@pytest.mark.parametrize(
    ("words", "file", "sentence"),
    [
        pytest.param(["eu"], "name: us\n", "eu.yaml is of cluster 'us'; expected 'eu'", id="another cluster"),
        pytest.param(
            ["eu"], "connection: {inCluster: true}\n", "has `connection`, which joining makes", id="connection"
        ),
        pytest.param(["eu"], "a: 1\n---\nb: 1\n", "has 2 documents; expected one cluster file", id="two"),
        pytest.param(["EU"], FILE, "'EU' is no name", id="no name"),
        pytest.param(["eu", "--account", "robot"], FILE, "'' is no name", id="no account"),
        pytest.param(["eu", "--token-lifetime", "1y"], FILE, "'1y' is no duration", id="no duration"),
        pytest.param(["eu", "--apply", "--register"], FILE, "not allowed with", id="both"),
    ],
)
def test_what_cannot_be_joined_is_refused(
    words: list[str], file: str, sentence: str, fairlead: Fairlead, at_home: Path
) -> None:
    (at_home / "eu.yaml").write_text(file)
    code, _, errors = fairlead("clusters", "join", *words, "-f", "eu.yaml")
    assert code != 0
    assert sentence in errors


def test_what_kubectl_complains_of_is_said_and_nothing_is_registered(
    fairlead: Fairlead, api: Any, kubectl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kubectl / "fails").touch()
    code, _, errors = fairlead("clusters", "join", "eu", "-f", "eu.yaml", "--register")
    assert (code, api.seen) == (1, [])
    assert "kubectl create failed: error: serviceaccounts is forbidden:?[2J you may not" in errors
    (kubectl / "kubectl").unlink()
    monkeypatch.setenv("PATH", str(kubectl))
    code, _, errors = fairlead("clusters", "join", "eu", "-f", "eu.yaml", "--apply")
    assert (code, "kubectl is not installed here" in errors) == (1, True)
