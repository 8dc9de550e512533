"""Access to a cluster's API server: as a pod, by a mounted kubeconfig file, or by stored credentials. Pure."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AsPod:
    """The control plane runs on the cluster: the pod's own service account."""


@dataclass(frozen=True, slots=True)
class KubeconfigFile:
    """A kubeconfig in a file; all that `kubectl` would do with it is done, so only an operator may place one.

    Attributes:
        context: empty uses the file's current one.
        content: of the file as it was read; a changed file is another access, so that new credentials take effect.
    """

    path: Path
    context: str = ""
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Self-contained credentials of an API server: using them reads no file and runs no program.

    Attributes:
        server: `https://HOST[:PORT]`.
        authority: PEM of the certificate authority of the server; empty trusts the machine's authorities.
        certificate, key: PEM of the client's certificate and its private key; empty where a token is used.
        server_name: host name in the server's certificate, where that is not the host of `server`.
    """

    server: str
    authority: str = ""
    certificate: str = ""
    key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    server_name: str = ""


Access = AsPod | KubeconfigFile | Credentials
