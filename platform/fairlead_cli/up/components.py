"""Components of the embedded platform: their commands and their environment."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from fairlead_cli.up.addresses import Address
from fairlead_cli.up.home import Home
from fairlead_cli.up.installation import project_root
from fairlead_cli.up.supervisor import Component

# The CLI's own variables must not leak into the platform it starts.
_NOT_INHERITED = ("FAIRLEAD_TOKEN", "FAIRLEAD_URL", "FAIRLEAD_GATEWAY_URL")
# Values that the settings take for true.
_TRUE = {"1", "true", "yes", "on"}
# Variables that the agent does not need, and its models must not have.
_SECRETS = (
    "FAIRLEAD_AUDIT_WEBHOOK",
    "FAIRLEAD_BACKUP_KEY",
    "FAIRLEAD_SECRET_KEY",
    "FAIRLEAD_DATABASE_URL",
    "FAIRLEAD_BROKER_URL",
    "FAIRLEAD_OIDC_CLIENT_SECRET",
    "FAIRLEAD_PROMETHEUS_TOKEN",
)
# Longer than the agent itself waits for requests in flight and then for its processes to end.
_AGENT_DRAIN_S = 60.0
_HOLDER_S = 5.0


@dataclass(frozen=True, slots=True)
class Inherited:
    """Descriptors of this process that its components inherit.

    Attributes:
        agent, holder: ends of a pair of sockets.
        gate: a pipe that ends when the database is prepared, for which web and worker wait.
    """

    agent: int
    holder: int
    gate: int


def metrics_access(home: Home, address: Address) -> str:
    """Return who may read web's metrics: tokens alone, where others reach the page of a home made since 0.2."""
    return "token" if home.defaults.exists() and not address.is_loopback else ""


def environment(
    home: Home,
    *,
    url: str,
    gateway_url: str,
    access: str = "",
    metrics_access: str = "",
    allow_python_models: bool = False,
) -> dict[str, str]:
    """Return the environment of every component; the addresses are those that clients use.

    Args:
        access: who may call new services, unless FAIRLEAD_DEFAULT_ACCESS says; empty leaves it to the control plane.
        metrics_access: who may read web's metrics, the same.
    """
    variables = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    variables |= {
        "FAIRLEAD_HOME": str(home.path),
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "FAIRLEAD_URL": url,
        "FAIRLEAD_GATEWAY_URL": gateway_url,
        "PYTHONUNBUFFERED": "1",
        # A folder called `registry` or a file `celery.py` in the working folder must not be taken for ours.
        "PYTHONSAFEPATH": "1",
    }
    if access and not variables.get("FAIRLEAD_DEFAULT_ACCESS"):
        variables["FAIRLEAD_DEFAULT_ACCESS"] = access
    if metrics_access and not variables.get("FAIRLEAD_METRICS_ACCESS"):
        variables["FAIRLEAD_METRICS_ACCESS"] = metrics_access
    if allow_python_models:
        variables["FAIRLEAD_ALLOW_PYTHON_MODELS"] = "true"
    if not variables.get("FAIRLEAD_SECRET_KEY"):
        variables["FAIRLEAD_SECRET_KEY_FILE"] = str(home.secret_key)
        if home.earlier_secret_keys.exists():
            variables["FAIRLEAD_SECRET_KEY_FALLBACKS_FILE"] = str(home.earlier_secret_keys)
    return variables


def components(
    home: Home,
    address: Address,
    gateway: Address,
    variables: Mapping[str, str],
    inherited: Inherited,
    *,
    log_requests: bool = False,
) -> list[Component]:
    """Return all components, in the order in which they end: no new desired state, no new plans, then the models."""
    python = sys.executable
    web = [python, "-m", "uvicorn", "control_plane.asgi:application", "--app-dir", str(project_root() / "platform")]
    web += ["--host", address.host, "--port", str(address.port), "--loop", "uvloop", "--no-access-log"]
    web += ["--http", "control_plane.http_protocol:HttpProtocol"]
    web += ["--timeout-graceful-shutdown", "3"]
    # Checks are of the code, and would import all pages; those of settings are made when the home is prepared.
    worker = [python, "-m", "celery", "-A", "control_plane", "--skip-checks", "worker", "-B", "--pool", "threads"]
    worker += ["--concurrency", "6", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    agent = [
        python,
        "-m",
        "integrations.clusters.local.agent",
        "--home",
        str(home.path),
        "--gateway-address",
        str(gateway),
    ]
    agents, holders, gate = inherited.agent, inherited.holder, inherited.gate
    agent += ["--holder", str(agents)]
    holder = [python, "-m", "integrations.clusters.local.holder", str(holders)]
    runtime_flags = ["--log-verbose=1"] if log_requests else []
    if variables.get("FAIRLEAD_ALLOW_PYTHON_MODELS", "").lower() in _TRUE:
        runtime_flags.append("--allow-python-models=true")
    agent += ["--runtime", shlex.join([python, "-I", "-m", "serving_runtime", *runtime_flags])]
    waiting = {**variables, "FAIRLEAD_PREPARED_FD": str(gate)}
    without_secrets = {name: value for name, value in variables.items() if not name.startswith(_SECRETS)}
    watcher = [python, "-m", "django", "watch_clusters"]
    return [
        Component("web", web, waiting, patience_s=8.0, inherits=gate),
        Component("watcher", watcher, variables, patience_s=20.0, wanted_by=home.watches),
        Component("worker", worker, waiting, patience_s=10.0, inherits=gate),
        Component("agent", agent, without_secrets, patience_s=_AGENT_DRAIN_S, inherits=agents),
        # Envoy and the replicas end with the holder: the agent may restart without them.
        Component(
            "holder",
            holder,
            without_secrets,
            patience_s=_HOLDER_S,
            starts_others=True,
            inherits=holders,
            ends_with=agents,
        ),
    ]
