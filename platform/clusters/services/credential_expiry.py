"""Expiry of the credentials by which clusters are reached: certificates, and tokens that say when they end.

Only what is stored or named by a setting is known. A mounted kubeconfig and a pod's service account are renewed by
those who mount them, and have none here.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from django.conf import settings

from clusters.models import Cluster
from clusters.services import prometheus
from clusters.services.connection import LOCAL, opened
from common.encryption import unseal
from common.errors import FairleadError
from integrations.clusters.base import Finding

WARN = timedelta(days=30)
URGENT = timedelta(days=7)
_REMEDIES = {
    "client_certificate": "apply the cluster file with a kubeconfig that has a new client certificate",
    "token": "apply the cluster file with a kubeconfig that has a new token (`kubectl create token`)",
    "authority": "apply the cluster file with a kubeconfig that has the new certificate authority",
    "prometheus_token": "apply the cluster file with a new prometheus.token",
    "gateway_certificate": "replace the file of FAIRLEAD_GATEWAY_CERTIFICATE by a renewed certificate",
}


@dataclass(frozen=True, slots=True)
class Expiry:
    """A credential that ends.

    Attributes:
        kind: one of `client_certificate`, `token`, `authority`, `prometheus_token` and `gateway_certificate`.
    """

    kind: str
    at: datetime


def expiries(cluster: Cluster) -> tuple[Expiry, ...]:
    """Return when the cluster's credentials end; without those that cannot be read now."""
    if cluster.kind == LOCAL:
        return _of_gateway(settings.GATEWAY_CERTIFICATE)
    try:
        return _of_stored(cluster.credentials, cluster.prometheus_token)
    except FairleadError:  # encrypted under another secret key, which the cluster's check says
        return ()


def expiry_findings(cluster: Cluster, now: datetime) -> Iterator[Finding]:
    """Yield a finding for each credential that ends within 30 days; it is not ok within 7 days."""
    for each in expiries(cluster):
        if (left := each.at - now) > WARN:
            continue
        what = each.kind.replace("_", " ")
        when = f"on {each.at:%Y-%m-%d %H:%M} UTC"
        message = f"the {what} expired {when}" if left <= timedelta(0) else f"the {what} expires {when}"
        yield Finding(what, left > URGENT, message, _REMEDIES[each.kind])


@lru_cache(maxsize=1024)
def _of_stored(credentials: str, prometheus_token: str) -> tuple[Expiry, ...]:
    """Return the ends of sealed credentials, each of which may be empty; raises Unavailable."""
    found: list[tuple[str, datetime | None]] = []
    if credentials:
        known = opened(credentials)
        found += [
            ("client_certificate", _end_of_certificates(known.certificate)),
            ("token", _end_of_token(known.token)),
            ("authority", _end_of_certificates(known.authority)),
        ]
    if prometheus_token:
        found.append(("prometheus_token", _end_of_token(unseal(prometheus_token, purpose=prometheus.PURPOSE))))
    return tuple(Expiry(kind, at) for kind, at in found if at is not None)


def _of_gateway(path: str) -> tuple[Expiry, ...]:
    """Return the end of the gateway's given certificate; a self-made one is renewed by itself."""
    try:
        at = _end_of_certificates(Path(path).read_text(encoding="ascii")) if path else None
    except (OSError, ValueError):  # read by the agent, which says what is wrong with it
        return ()
    return () if at is None else (Expiry("gateway_certificate", at),)


def _end_of_certificates(pem: str) -> datetime | None:
    """Return the end of the first certificate, which is the server's or client's own; None for none."""
    try:
        return x509.load_pem_x509_certificates(pem.encode())[0].not_valid_after_utc if pem else None
    except ValueError:
        return None


def _end_of_token(token: str) -> datetime | None:
    """Return `exp` of a JSON Web Token, unverified; None for other tokens and for one without end."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None
