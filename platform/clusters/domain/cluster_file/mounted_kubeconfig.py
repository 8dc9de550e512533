"""Kubeconfig that the operator mounted: what of it renews itself, or ends. Pure.

The client library reads the rest. Its user may name files, and a program: of the operator's list where there is one.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusters.domain.cluster_file.exec_plugin import parse_exec
from clusters.domain.cluster_file.kubeconfig import cluster_and_user, read
from common.errors import InvalidInput
from common.files.document import Document, parse_document
from integrations.clusters.kubernetes.access import ClusterInfo, ExecPlugin

_FILES = {"certificate-authority": "authority", "client-certificate": "certificate", "client-key": "key"}


@dataclass(frozen=True, slots=True)
class MountedUser:
    """Credentials of a mounted kubeconfig's context.

    Attributes:
        files: absolute paths of the files that the kubeconfig names, by `authority`, `certificate` and `key`.
        embedded: PEM of those that are in it.
        token_file: absolute path; empty without one.
        has_auth_provider: the client library would run a plugin of its own.
    """

    files: Mapping[str, str]
    embedded: Mapping[str, str]
    token: str = field(default="", repr=False)
    token_file: str = ""
    exec_plugin: ExecPlugin | None = None
    has_auth_provider: bool = False


def parse_mounted(content: bytes, *, path: Path, context: str) -> MountedUser:
    """Return the credentials of a context; raises InvalidInput."""
    what = f"the kubeconfig {path}"
    values = read(content.decode(errors="replace"), what)
    return parse_document(values, what, lambda document: _parsed(document, path.parent, context))


def _parsed(document: Document, folder: Path, context: str) -> MountedUser:
    cluster, user = cluster_and_user(document, context)
    files: dict[str, str] = {}
    embedded: dict[str, str] = {}
    for name, what in _FILES.items():
        of = cluster if what == "authority" else user
        if data := of.text(f"{name}-data", default=""):
            embedded[what] = _pem(data)
        elif named := of.text(name, default=""):
            files[what] = str(folder / named)
    info = ClusterInfo(
        cluster.text("server", default=""), embedded.get("authority", ""), cluster.text("tls-server-name", default="")
    )
    given = user.optional("exec")
    plugin = None if given is None else parse_exec(given, cluster=info, is_mounted=True)
    token_file = user.text("tokenFile", default="")
    return MountedUser(
        files,
        embedded,
        user.text("token", default="").strip(),
        str(folder / token_file) if token_file else "",
        plugin,
        user.raw("auth-provider", None) is not None,
    )


def _pem(data: str) -> str:
    try:
        return base64.b64decode("".join(data.split()), validate=True).decode("ascii")
    except ValueError:  # the client library says what is wrong with it
        return ""


def refuse_unlisted(user: MountedUser, *, path: Path) -> None:
    """Raise InvalidInput where the library would run a program beside `exec`."""
    if user.has_auth_provider:
        raise InvalidInput(
            f"the kubeconfig {path} has auth-provider, which runs programs that no list has; use exec, or a token",
            field="connection.kubeconfigPath",
        )
