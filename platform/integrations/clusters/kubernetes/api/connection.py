"""Connection settings of Kubernetes' client library, made of how a cluster is reached.

Tokens of files and of exec plugins are read again for each request: what rotates takes effect without a restart.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.config.kube_config import KubeConfigLoader

from common.errors import InvalidInput, Unavailable
from integrations.clusters.kubernetes.access import Access, AsPod, Credentials, ExecPlugin, KubeconfigFile
from integrations.clusters.kubernetes.api import exec_plugin

_BEARER = "BearerToken"
_MOST_TOKEN_BYTES = 1 << 16
_RUN_PROGRAMS = ("exec", "auth-provider")


def settings_of(access: Access) -> client.Configuration:
    """Return the library's settings; raises InvalidInput where the access does not say how to reach a cluster."""
    settings = client.Configuration()
    try:
        match access:
            case AsPod():
                config.load_incluster_config(client_configuration=settings)
            case KubeconfigFile() if not access.runs_any or access.token_file:
                _load(access, settings)
            case KubeconfigFile(path, context):
                config.load_kube_config(str(path), context or None, client_configuration=settings)
            case Credentials(server, token=token, server_name=server_name):
                settings.host = server
                settings.tls_server_name = server_name or None
                if token:
                    settings.api_key = {_BEARER: f"Bearer {token}"}
    except (config.ConfigException, yaml.YAMLError) as error:
        where = f"the kubeconfig {access.path}" if isinstance(access, KubeconfigFile) else "the pod's service account"
        raise InvalidInput(f"{where} does not say how to reach a Kubernetes cluster: {error}") from error
    if (renewed := _renewed_token(access)) is not None:
        settings.api_key[_BEARER] = ""  # the library asks the hook for one that is there
        _renew_by(settings, renewed)
    return settings


def _renew_by(settings: Any, renewed: Callable[[], str]) -> None:
    """Have the library ask for the token before each request."""

    def hook(each: Any) -> None:
        each.api_key[_BEARER] = f"Bearer {renewed()}"

    settings.refresh_api_key_hook = hook


def refused_token(access: Access) -> None:
    """Have a token that the server refuses made again, where a plugin makes it."""
    if (plugin := _plugin_of(access)) is not None:
        exec_plugin.forget(plugin)


def _load(file: KubeconfigFile, settings: client.Configuration) -> None:
    """Load a mounted kubeconfig without what would run a program, and without its token's file."""
    content: Any = yaml.safe_load(file.content or file.path.read_bytes())
    if not isinstance(content, dict):
        raise config.ConfigException("it is no object with named fields")
    left_out = (*(() if file.runs_any else _RUN_PROGRAMS), *(("tokenFile",) if file.token_file else ()))
    for each in content.get("users") or ():
        user = each.get("user") if isinstance(each, dict) else None
        if isinstance(user, dict):
            for name in left_out:
                user.pop(name, None)
    folder = str(file.path.parent)
    KubeConfigLoader(content, file.context or None, config_base_path=folder).load_and_set(settings)


def _plugin_of(access: Access) -> ExecPlugin | None:
    return None if isinstance(access, AsPod) else access.exec_plugin


def _renewed_token(access: Access) -> Callable[[], str] | None:
    """Return what gives the present token; None where the access has one that stays."""
    plugin = _plugin_of(access)
    if isinstance(access, KubeconfigFile) and access.token_file:
        return lambda: _read_token(Path(access.token_file))
    return None if plugin is None else lambda: exec_plugin.token_of(plugin).text


def _read_token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            token = file.read(_MOST_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Unavailable(
            f"the token file {path} cannot be read: {why}; mount it into web, worker and watcher"
        ) from error
    if not token or not token.isprintable() or " " in token:
        raise Unavailable(f"the token file {path} has no token of printable characters; mount one into it")
    return token
