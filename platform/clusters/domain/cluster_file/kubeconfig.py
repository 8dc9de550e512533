"""Kubeconfig parser. Pure.

Running a program, or reading a file of the control plane's machine, because a user sent its name would hand that
machine over: `auth-provider` and paths are refused by name, and `exec` has to name a program of the operator's list
(`exec_plugin`). Of several clusters and users only those of the context are kept.
"""

import base64
from collections.abc import Mapping
from functools import partial

import yaml

from clusters.domain.cluster_file.exec_plugin import parse_exec
from common.errors import InvalidInput
from common.files.document import Document
from common.files.yaml_text import load
from common.identifiers import is_web_address
from integrations.clusters.kubernetes.access import ClusterInfo, Credentials

_IN_ITSELF = (
    "put a token (`kubectl create token ACCOUNT --duration ...`) or client-certificate-data with client-key-data there"
)
_MOUNT = "or mount the kubeconfig into web and worker and name it as connection.kubeconfigPath"
_OF_A_USER = {
    "auth-provider": f"it would run a plugin on the control plane's machine; {_IN_ITSELF}, {_MOUNT}",
    "tokenFile": f"it is a path on another machine; put what the file holds there as token, {_MOUNT}",
    "client-certificate": "it is a path on another machine; embed the file as client-certificate-data "
    f"(`kubectl config view --flatten --raw --minify` does), {_MOUNT}",
    "client-key": "it is a path on another machine; embed the file as client-key-data "
    f"(`kubectl config view --flatten --raw --minify` does), {_MOUNT}",
    "username": f"Kubernetes takes no passwords any more; {_IN_ITSELF}",
    "password": f"Kubernetes takes no passwords any more; {_IN_ITSELF}",
}
_OF_A_CLUSTER = {
    "certificate-authority": "it is a path on another machine; embed the file as certificate-authority-data "
    f"(`kubectl config view --flatten --raw --minify` does), {_MOUNT}",
    "insecure-skip-tls-verify": "credentials are sent only to a server that proves who it is; put "
    "certificate-authority-data there",
    "proxy-url": f"a proxy is the environment's business (HTTPS_PROXY of web and worker), {_MOUNT}",
}


def parse_kubeconfig(connection: Document, name: str, context: str) -> Credentials:
    """Return how the context's cluster is reached.

    Args:
        name: the field of `connection` that holds the kubeconfig, as an object or as YAML text.
        context: the context's name; empty takes the current one.

    Raises:
        InvalidInput: it is no kubeconfig, or has a field that cannot be honoured, by its dotted name.
    """
    field = connection.path(name)
    return _of_both(*cluster_and_user(connection.document(name, lambda value: read(value, field)), context))


def cluster_and_user(document: Document, context: str) -> tuple[Document, Document]:
    """Return the cluster and the user of a context of a kubeconfig; raises InvalidInput."""
    current = document.text("current-context", default="")
    chosen = context or current
    if not chosen:
        field = document.prefix
        raise InvalidInput(f"{field} has no current-context; name one as connection.context", field=field)
    place = _named(document, "contexts", "context", chosen)
    cluster = _named(document, "clusters", "cluster", place.text("cluster"))
    return cluster, _named(document, "users", "user", place.text("user"))


def read(value: object, field: str) -> object:
    """Return a kubeconfig that may be YAML text as its values; raises InvalidInput."""
    if not isinstance(value, str):
        return value
    try:
        return load(value)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # without the line itself, which may hold a secret
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise InvalidInput(f"{field} is no YAML{where}", field=field) from None


def _named(document: Document, plural: str, singular: str, name: str) -> Document:
    """Return the list's entry of a name."""
    named = {each.text("name"): each for each in document.documents(plural)}
    if name not in named:
        there = ", ".join(sorted(named)) or "none"
        field = document.path(plural)
        raise InvalidInput(f"{field} has no {singular} {name[:80]!r}; there are: {there[:300]}", field=field)
    return named[name].document(singular)


def _of_both(cluster: Document, user: Document) -> Credentials:
    _refuse(cluster, _OF_A_CLUSTER)
    _refuse(user, _OF_A_USER)
    server = cluster.text("server", check=_check_server)
    certificate, key = _pem(user, "client-certificate-data"), _pem(user, "client-key-data")
    token = user.text("token", default="").strip()
    known = ClusterInfo(
        server, _pem(cluster, "certificate-authority-data"), cluster.text("tls-server-name", default="")
    )
    plugin = user.part("exec", partial(parse_exec, cluster=known, is_mounted=False))
    found = Credentials(server, known.authority, certificate, key, token, known.server_name, plugin)
    for part in (cluster, user):
        part.raw("extensions", None)  # other programs' notes
        part.refuse_unknown()
    if bool(certificate) != bool(key) and user.is_sound():
        there, missing = ("certificate", "key") if certificate else ("key", "certificate")
        user.fault(f"client-{missing}-data", f"is missing, but client-{there}-data is there; give both")
    if plugin is not None and (certificate or token):
        user.fault("exec", "is beside a token or a client certificate; leave one of them")
    if plugin is None and not certificate and not token and user.is_sound():
        user.fault("token", f"is missing, and there is no client certificate; {_IN_ITSELF}")
    return found


def _refuse(part: Document, instead: Mapping[str, str]) -> None:
    for name, what_to_do in instead.items():
        if part.raw(name, None) not in (None, False, ""):
            part.fault(name, f"is not honoured: {what_to_do}")


def _check_server(server: str, *, field: str) -> str:
    if not is_web_address(server, schemes=("https",)):
        raise InvalidInput(f"{field} is {server[:100]!r}; expected https://HOST:PORT", field=field)
    return server.rstrip("/")


def _pem(part: Document, name: str) -> str:
    """Return the decoded base64 value; empty where it is missing."""
    value = part.text(name, default="")
    try:
        return base64.b64decode("".join(value.split()), validate=True).decode("ascii")
    except ValueError:  # not base64, or not ASCII
        part.fault(name, "is no base64 of a PEM")
        return ""
