"""Runbooks of the embedded platform, followed on one that serves a model; a script stands in for systemd."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e._support.platforms import models  # noqa: F401 - three trained models
from tests.e2e.harness import Platform, serve_digits, until
from tests.runbooks.following import Shell, followed, tool

pytestmark = pytest.mark.e2e
POLICY = """
name: by-hand
strategy: canary
steps: [{weight: 20, pause: true}]
scaleDownDelay: 0s
"""
# What systemd would do for the unit of docs/how-to/run-as-a-service.md.
SYSTEMCTL = """#!/bin/bash
set -eu
case $1 in
stop | restart) kill -TERM "$(cat up.pid)"; tail --pid "$(cat up.pid)" -f /dev/null ;;&
start | restart)
    nohup {command} >> up.log 2>&1 < /dev/null & echo $! > up.pid
    for _ in $(seq 900); do
        grep -qs "\\"pid\\": $(cat up.pid)[,}}]" "$FAIRLEAD_HOME/endpoints.json" && exit 0
        sleep 0.2
    done
    exit 1 ;;
esac
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Iterator[Platform]:  # noqa: F811
    made = Platform(tmp_path_factory.mktemp("runbooks") / ".fairlead")
    made.start()
    assert made.process is not None
    file = made.home.parent / "up.pid"
    file.write_text(f"{made.process.pid}\n")
    threading.Thread(target=made.process.wait, daemon=True).start()  # whoever ends it sees that it is gone
    try:
        serve_digits(made, models, POLICY)
        yield made
    finally:
        pid = int(file.read_text())
        os.kill(pid, signal.SIGTERM)
        until(lambda: not Path(f"/proc/{pid}").exists(), 120, "the platform's end")


@pytest.fixture
def shell(platform: Platform) -> Shell:
    folder = platform.home.parent
    tool(folder / "tools" / "systemctl", SYSTEMCTL.format(command=" ".join(platform.command)))
    tool(folder / "tools" / "fairlead", [sys.executable, "-m", "fairlead_cli"])
    return Shell(folder, platform.environment | {"PATH": f"{folder / 'tools'}:{os.environ['PATH']}"})


def until_paused(shell: Shell) -> None:
    def paused() -> bool:
        return bool(json.loads(shell.run("fairlead rollouts status digits --output json"))["phase"] == "Paused")

    until(paused, 300, "the rollout's pause")


def until_answered(platform: Platform) -> None:
    url = f"http://{platform.gateway}/serving/default/digits/v2/models/digits"

    def answered() -> bool:
        try:
            return httpx.get(url, timeout=20, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    until(answered, 300, "the model's answer")


def test_a_rollout_waits(shell: Shell) -> None:
    shell.run("fairlead rollouts start digits --version 2")
    until_paused(shell)
    with followed("runbooks/rollout-waits.md", shell) as page:
        said = page.follow()
        assert "Paused" in said
        assert "promote" in said
        assert "digits-00002" in page.follow()
        assert "agent" in page.follow()
        page.follow()
        shell.run("fairlead rollouts status digits --wait --timeout 300")
        shell.run("fairlead rollouts start digits --version 1")
        until_paused(shell)
        assert "Abort" in page.follow()


def test_the_disk_is_full(platform: Platform, shell: Shell, models: Path) -> None:  # noqa: F811
    shell.run(f"fairlead models push {models / 'v3.onnx'} --name digits --wait")
    old = platform.home / "logs" / "web.log.1"
    old.write_text("old\n")
    with followed("runbooks/disk-full.md", shell) as page:
        assert str(platform.home / "artifacts") in page.follow()
        page.follow()
        assert not old.exists()
        page.follow()
        left = json.loads(shell.run("fairlead models show digits --output json"))["versions"]
        assert {version["number"] for version in left} == {1, 2}
        assert "digits" in page.follow()


def test_secrets_are_rotated(platform: Platform, shell: Shell) -> None:
    shell.run("fairlead tokens create --name ci --scope write")
    shell.run("fairlead webhooks create https://ci.example/hook --event RolloutHealthy")
    browser = signed_in(platform, (platform.home / "token").read_text().strip())
    with followed("runbooks/rotate-secrets.md", shell) as page:
        page.follow()
        new = json.loads((shell.folder / "new-token.json").read_text())
        assert new["name"] == "ci-new"
        assert "oken" in page.follow()
        names = {each["name"] for each in tokens(shell)}
        assert "ci-new" in names
        assert "ci" not in names
        token, key = ((platform.home / name).read_text() for name in ("token", "secret-key"))
        page.follow()
        assert (platform.home / "token").read_text() != token
        assert not is_signed_in(platform, browser)
        browser = signed_in(platform, (platform.home / "token").read_text().strip())
        assert "whsec_" in page.follow()
        assert "digits" in page.follow()
    assert (platform.home / "secret-key").read_text() != key
    assert not (platform.home / "secret-key-fallbacks").exists()
    assert is_signed_in(platform, browser)
    until_answered(platform)


@pytest.mark.long
def test_a_backup_is_restored(platform: Platform, shell: Shell) -> None:
    with followed("how-to/back-up-and-restore.md", shell) as page:
        page.follow()
        shell.run("fairlead tokens create --name after-the-backup --scope read")
        assert "digits" in page.follow()
        assert "restored" in page.follow()
    assert (platform.home.parent / "restored" / "secret-key").read_text() == (platform.home / "secret-key").read_text()
    assert "after-the-backup" not in {each["name"] for each in tokens(shell)}
    until_answered(platform)


def tokens(shell: Shell) -> list[dict[str, str]]:
    """Return the tokens that are accepted."""
    found: list[dict[str, str]] = json.loads(shell.run("fairlead tokens list --output json"))
    return [each for each in found if not each["revoked_at"]]


def signed_in(platform: Platform, token: str) -> httpx.Cookies:
    """Return the cookies of a browser that signed in with a token."""
    with httpx.Client(base_url=platform.url, timeout=60, trust_env=False, follow_redirects=True) as client:
        client.get("/signin/")
        form = {"token": token, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        assert client.post("/signin/", data=form).status_code == 200
        assert is_signed_in(platform, client.cookies)
        return client.cookies


def is_signed_in(platform: Platform, browser: httpx.Cookies) -> bool:
    url = f"{platform.url}/services/"
    return httpx.get(url, cookies=browser, timeout=60, trust_env=False).status_code == 200
