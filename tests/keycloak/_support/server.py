"""A running Keycloak on the loopback address, and its admin API."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.keycloak._support.distribution import distribution, java_options
from tests.servers.parts import free_port

Json = dict[str, Any]
_START_S = 400.0
_ADMIN, _PASSWORD = "admin", "a-password-of-the-tests"


class Keycloak:
    """A server whose realms the tests make; it keeps all in memory.

    Attributes:
        url: where it answers, the same after a restart.
        started_s: how long its start took.
    """

    def __init__(self, log: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.started_s = 0.0
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._token, self._token_until = "", 0.0

    def start(self) -> None:
        """Start it and wait until it answers; raises MissingPartError where the machine cannot."""
        program = distribution() / "bin" / "kc.sh"
        host, port = self.url.removeprefix("http://").split(":")
        command = [str(program), "start", "--optimized", "--cache=local", "--http-enabled=true"]
        command += [f"--http-host={host}", f"--http-port={port}", "--hostname-strict=false"]
        admin = {"KC_BOOTSTRAP_ADMIN_USERNAME": _ADMIN, "KC_BOOTSTRAP_ADMIN_PASSWORD": _PASSWORD}
        began = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=java_options() | admin,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() - began < _START_S, f"Keycloak did not start: {self._log.read_text()[-2000:]}"
            time.sleep(0.1)
        self.started_s = time.monotonic() - began

    def stop(self) -> None:
        """End it at once; nothing answers at its address from then on."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/realms/master", timeout=30).status_code == 200
        return False

    def admin(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Return the answer of the admin API; a refusal fails the test."""
        headers = {"Authorization": f"Bearer {self._admin_token()}"}
        answer = httpx.request(method, f"{self.url}/admin/{path}", json=body, headers=headers, timeout=60)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer

    def _admin_token(self) -> str:
        if time.monotonic() > self._token_until:
            form = {"grant_type": "password", "client_id": "admin-cli", "username": _ADMIN, "password": _PASSWORD}
            answer = httpx.post(f"{self.url}/realms/master/protocol/openid-connect/token", data=form, timeout=60)
            self._token, self._token_until = answer.json()["access_token"], time.monotonic() + 30
        return self._token


@contextmanager
def keycloak(log: Path) -> Iterator[Keycloak]:
    """Give a running server, which ends with the block; raises MissingPartError."""
    server = Keycloak(log)
    try:
        server.start()
        yield server
    finally:
        server.stop()
