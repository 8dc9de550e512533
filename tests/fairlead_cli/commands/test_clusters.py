"""`fairlead clusters`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Fairlead = Callable[..., tuple[int, str, str]]
CLUSTER = {
    "name": "production",
    "kind": "kubernetes",
    "components": [{"name": "gateway", "ready": True}],
    "checked_at": None,
    "problem": "",
    "gateway_url": "https://models.example.com",
    "services": ["default/digits"],
}
PLAN = {"outcome": "created", "message": "cluster production is new", "before": None, "after": {"name": "production"}}


def test_clusters_are_listed_and_shown(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /clusters", {"next": None, "results": [CLUSTER]})
    api.on("GET /clusters/production", CLUSTER)
    code, said, _ = fairlead("clusters", "list")
    assert (code, "gateway up" in said) == (0, True)
    code, said, _ = fairlead("clusters", "show", "production")
    assert (code, "default/digits" in said, "https://models.example.com" in said) == (0, True, True)


def test_limits_of_the_machine_are_shown_with_what_to_do(fairlead: Fairlead, api: Any) -> None:
    close = {"name": "open files", "level": "close", "message": "gateway uses 900 of 1,024; raise it"}
    fine = {"name": "memory", "level": "fine", "message": ""}
    api.on("GET /clusters/local", {**CLUSTER, "limits": [close, fine]})
    code, said, _ = fairlead("clusters", "show", "local")
    assert (code, "open files close, memory fine; gateway uses 900 of 1,024; raise it" in said) == (0, True)


def test_the_ends_of_credentials_are_shown(fairlead: Fairlead, api: Any) -> None:
    ends = {"kind": "mounted_token", "expires_at": "2026-12-17T00:00:00Z"}
    api.on("GET /clusters/production", {**CLUSTER, "credentials": [ends]})
    code, said, _ = fairlead("clusters", "show", "production")
    assert (code, "mounted token until 2026-12-17T00:00:00Z" in said) == (0, True)


def test_a_kubeconfig_is_given_along_with_a_file_that_holds_none(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "production.yaml").write_text("name: production\nconnection: {context: eu}\n")
    (at_home / "kubeconfig").write_text("current-context: eu\nusers: [{name: robot, user: {token: secret}}]\n")
    api.on("PUT /clusters/production?dry_run=true", PLAN)
    api.on("PUT /clusters/production", CLUSTER, status=201)
    code, said, told = fairlead("clusters", "apply", "-f", "production.yaml", "--kubeconfig", "kubeconfig")
    assert code == 0
    kubeconfig = {"current-context": "eu", "users": [{"name": "robot", "user": {"token": "secret"}}]}
    for seen in api.seen:
        assert seen.document["connection"] == {"context": "eu", "kubeconfig": kubeconfig}
    assert "secret" not in said + told


def test_a_check_that_finds_something_missing_says_what_to_do_and_fails(fairlead: Fairlead, api: Any) -> None:
    gateway = {"about": "Gateway", "ok": False, "message": "there is no Gateway", "remedy": "create it"}
    found = {"name": "production", "ok": False, "findings": [gateway]}
    api.on("GET /clusters/production/check?namespace=vision", found)
    code, said, told = fairlead("clusters", "check", "production", "--namespace", "vision")
    assert (code, told) == (1, "cluster production needs the remedies above\n")
    assert "create it" in said
    code, said, _ = fairlead("clusters", "check", "production", "--namespace", "vision", "-o", "json")
    assert (code, json.loads(said)) == (1, found)


def test_a_check_that_finds_nothing_wrong_succeeds(fairlead: Fairlead, api: Any) -> None:
    server = {"about": "API server", "ok": True, "message": "Kubernetes v1.34.1 answers", "remedy": ""}
    api.on("GET /clusters/production/check", {"name": "production", "ok": True, "findings": [server]})
    code, said, _ = fairlead("clusters", "check", "production")
    assert (code, "v1.34.1" in said) == (0, True)


def test_a_cluster_is_forgotten(fairlead: Fairlead, api: Any) -> None:
    api.on("DELETE /clusters/production", None, status=204)
    assert fairlead("clusters", "delete", "production")[:2] == (0, "deleted cluster production\n")


def test_a_file_without_a_name_is_refused(fairlead: Fairlead, at_home: Path) -> None:
    (at_home / "some.yaml").write_text("kind: kubernetes\n")
    code, _, told = fairlead("clusters", "apply", "-f", "some.yaml")
    assert (code, told) == (1, "some.yaml names no cluster; expected a field `name`\n")


def test_each_fault_of_a_file_is_a_line(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "production.yaml").write_text("name: production\n")
    faults = ["kind is missing", "gateway is missing"]
    error = {"code": "invalid_input", "field": "kind", "request_id": None, "details": faults}
    message = f"the cluster file has 2 faults; the first: {faults[0]}"
    api.on("PUT /clusters/production?dry_run=true", {"error": {**error, "message": message}}, status=400)
    code, _, told = fairlead("clusters", "apply", "-f", "production.yaml")
    assert (code, told) == (1, f"{message}\n  {faults[1]}\n")
