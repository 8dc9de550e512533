"""TLS at the gateway of one machine: its settings, the check of certificates, and the self-made ones.

    FAIRLEAD_GATEWAY_TLS=true                                    a self-made certificate, in `tls/` of the home
    FAIRLEAD_GATEWAY_CERTIFICATE=FILE FAIRLEAD_GATEWAY_KEY=FILE  a given one
    FAIRLEAD_GATEWAY_CLIENT_CA=FILE                              besides, only clients with a certificate of these

`python -m integrations.clusters.local.tls --gateway-address HOST:PORT` checks all of it before a gateway starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from integrations.clusters.local.tls.certificates import (
    BadCertificateError,
    ServerCertificate,
    authorities,
    content_of,
    server_certificate,
)
from integrations.clusters.local.tls.self_made import SelfMade, machine_names

__all__ = ["BadCertificateError", "GatewayTls", "Served"]

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"", "0", "false", "no", "off"}


@dataclass(frozen=True, slots=True)
class Served:
    """What the gateway presents, and the PEM of the authorities of its clients, empty where it asks for none."""

    certificate: ServerCertificate
    client_authorities: bytes = b""


@dataclass(frozen=True, slots=True)
class GatewayTls:
    """Files of the gateway's certificate, of its private key and of the authorities of its clients.

    Attributes:
        self_made: renews the first two; None where they are given.
        client_authorities: None where clients need no certificate.
    """

    certificate: Path
    key: Path
    self_made: SelfMade | None = None
    client_authorities: Path | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str], *, home: Path, host: str) -> "GatewayTls | None":
        """Return the settings of the environment; None where the gateway speaks plain HTTP.

        Args:
            host: the address that the gateway listens on; a self-made certificate is for its names.

        Raises:
            BadCertificateError: half of a setting is missing, or one is wrong.
        """
        if (said := environ.get("FAIRLEAD_GATEWAY_TLS", "").lower()) not in _TRUE | _FALSE:
            raise BadCertificateError(f"FAIRLEAD_GATEWAY_TLS is {said!r}; expected true or false")
        certificate, key = environ.get("FAIRLEAD_GATEWAY_CERTIFICATE", ""), environ.get("FAIRLEAD_GATEWAY_KEY", "")
        clients = environ.get("FAIRLEAD_GATEWAY_CLIENT_CA", "")
        if bool(certificate) != bool(key):
            given, missing = ("certificate", "key") if certificate else ("key", "certificate")
            raise BadCertificateError(
                f"--gateway-{given} is given without --gateway-{missing}; give both, or --gateway-tls alone for a "
                "self-made certificate"
            )
        client_authorities = Path(clients) if clients else None
        if certificate:
            return cls(Path(certificate), Path(key), None, client_authorities)
        if said in _TRUE:
            public = urlsplit(environ.get("FAIRLEAD_GATEWAY_URL", "")).hostname
            made = SelfMade(home / "tls", machine_names(host) | ({public} if public else set()))
            return cls(made.certificate, made.key, made, client_authorities)
        if clients:
            raise BadCertificateError("--gateway-client-ca is for a gateway with TLS; add --gateway-tls")
        return None

    def read(self, now: datetime) -> Served:
        """Return what the files have now, checked; a self-made certificate is made or renewed first where it is due.

        Raises:
            BadCertificateError: one sentence with the file, what is wrong with it, and what to do.
        """
        if self.self_made is not None:
            self.self_made.ensure(now)
        found = server_certificate(self.certificate, self.key, now)
        if self.client_authorities is None:
            return Served(found)
        return Served(found, authorities(self.client_authorities, content_of(self.client_authorities), now))
