"""Access to a cluster's API server: as a pod, by a mounted kubeconfig file, or by stored credentials. Pure."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AsPod:
    """The control plane runs on the cluster: the pod's own service account."""


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What a plugin may be given of its cluster; `authority` is PEM."""

    server: str
    authority: str = ""
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints a token, as `exec` of a kubeconfig names it (client.authentication.k8s.io).

    Attributes:
        command: absolute path, which the operator's list has.
        env: names and values of additional variables.
        cluster: what the program is given of the cluster; None where it does not ask for it.
    """

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    cluster: ClusterInfo | None = None


@dataclass(frozen=True, slots=True)
class KubeconfigFile:
    """A kubeconfig in a file, which only an operator may place.

    Attributes:
        context: empty uses the file's current one.
        content: of the file as it was read; a changed file is another access, so that new credentials take effect.
        exec_plugin: of the context's user; None also where `runs_any` leaves it to the client library.
        token_file: of the context's user, read again for each request; empty without one.
        versions: of the certificates and the key that the file names: path, time of change and size. Changed ones
            make another access.
        runs_any: the client library may run whatever the file names, since the operator has no list of programs.
    """

    path: Path
    context: str = ""
    content: bytes = field(default=b"", repr=False)
    exec_plugin: ExecPlugin | None = None
    token_file: str = ""
    versions: tuple[tuple[str, int, int], ...] = ()
    runs_any: bool = True


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of an API server that read no file; a program runs only where `exec_plugin` names one.

    Attributes:
        server: `https://HOST[:PORT]`.
        authority: PEM of the certificate authority of the server; empty trusts the machine's authorities.
        certificate, key: PEM of the client's certificate and its private key; empty where a token is used.
        server_name: host name in the server's certificate, where that is not the host of `server`.
        exec_plugin: prints the token, in place of one that is stored.
    """

    server: str
    authority: str = ""
    certificate: str = ""
    key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    server_name: str = ""
    exec_plugin: ExecPlugin | None = None


Access = AsPod | KubeconfigFile | Credentials
