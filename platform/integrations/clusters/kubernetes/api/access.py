"""Access to a cluster's API server: as a pod, by a mounted kubeconfig file, or by stored credentials."""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import InvalidInput


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

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context of connections.

        Raises:
            InvalidInput: a certificate or the key is invalid, or they do not belong together.
        """
        try:
            context = ssl.create_default_context(cadata=self.authority or None)
            if self.certificate:
                _load(context, self.certificate, self.key)
        except (ssl.SSLError, ValueError) as error:
            raise InvalidInput(f"certificates and key for {self.server} cannot be used: {error}") from error
        return context


Access = AsPod | KubeconfigFile | Credentials


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a client's certificate. Python reads it from files only: these are removed at once."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:  # readable for its owner alone
        pair = Path(folder) / "pair.pem"
        pair.write_text(f"{certificate}\n{key}\n", encoding="ascii")
        context.load_cert_chain(pair)
