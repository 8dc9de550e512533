"""kubectl: applies manifests to a joining cluster, and makes the kubeconfig that the control plane gets."""

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from fairlead_cli.client import Json
from fairlead_cli.errors import CliError
from fairlead_cli.join.manifests import Account, as_yaml
from fairlead_cli.output import render

_TIMEOUT_S = 60.0
_PAUSE_S = 0.5
TOKEN_WITHIN_S = 30.0


class Kubectl:
    """kubectl with one of its contexts; an empty one is the current one."""

    def __init__(self, context: str = "") -> None:
        self._chosen = [f"--context={context}"] if context else []

    def apply(self, objects: Sequence[Json]) -> None:
        """Apply objects, each of which may be there already; raises CliError with kubectl's own words."""
        self._run("apply", "--server-side", "--field-manager=fairlead-join", "-f", "-", given=as_yaml(objects))

    def kubeconfig(self, account: Account, *, server: str, lifetime: str) -> Json:
        """Return a kubeconfig with a token of the account, and none of the caller's credentials.

        Args:
            server: the API server's address for the control plane; empty is the one that kubectl uses.
            lifetime: of the token, such as `8760h`; the API server may shorten it.
        """
        found = json.loads(self._run("config", "view", "--minify", "--flatten", "--raw", "-o", "json"))
        clusters = found.get("clusters") or []
        if len(clusters) != 1:
            raise CliError("kubectl has no current context; name one with --context")
        cluster: dict[str, Any] = {**clusters[0]["cluster"]}
        if server:
            cluster["server"] = server
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fairlead",
            "clusters": [{"name": "fairlead", "cluster": cluster}],
            "users": [{"name": "fairlead", "user": {"token": self._token(account, lifetime)}}],
            "contexts": [{"name": "fairlead", "context": {"cluster": "fairlead", "user": "fairlead"}}],
        }

    def _token(self, account: Account, lifetime: str) -> str:
        """Return a token of the account, which may still be about to be there."""
        deadline = time.monotonic() + TOKEN_WITHIN_S
        while True:
            try:
                asked = ("create", "token", account.name, f"--namespace={account.namespace}", f"--duration={lifetime}")
                return self._run(*asked).strip()
            except CliError as error:
                if "not found" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE_S)

    def _run(self, *words: str, given: str = "") -> str:
        command = ["kubectl", *self._chosen, *words]
        try:
            done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except FileNotFoundError as error:
            raise CliError(
                "kubectl is not installed here; install it, or apply the printed manifests elsewhere"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise CliError(
                f"kubectl {words[0]} did not end within {_TIMEOUT_S:g} s; does the cluster answer?"
            ) from error
        if done.returncode != 0:
            said = render.clean(" ".join(done.stderr.split()))[:600] or f"exit code {done.returncode}"
            raise CliError(f"kubectl {words[0]} failed: {said}")
        return done.stdout
