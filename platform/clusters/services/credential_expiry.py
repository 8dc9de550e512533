"""Expiry of the credentials by which clusters are reached: certificates, and tokens that say when they end.

Stored credentials are replaced by people, who need days. Mounted ones and tokens of exec plugins are renewed by
programs, often within the hour: these fail where less than a tenth of the lifetime is left. A pod's own service account
has none here.
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
from clusters.services.connection import LOCAL, access_to, mounted_user, opened
from common.encryption import unseal
from common.errors import FairleadError
from integrations.clusters.base import Finding
from integrations.clusters.kubernetes.access import KubeconfigFile

WARN = timedelta(days=30)
URGENT = timedelta(days=7)
_RENEWED = frozenset({"mounted_certificate", "mounted_token", "mounted_authority", "exec_token"})
_REMEDIES = {
    "client_certificate": "apply the cluster file with a kubeconfig that has a new client certificate",
    "token": "apply the cluster file with a kubeconfig that has a new token (`kubectl create token`)",
    "authority": "apply the cluster file with a kubeconfig that has the new certificate authority",
    "prometheus_token": "apply the cluster file with a new prometheus.token",
    "mounted_certificate": "renew the client certificate of the mounted kubeconfig; it is read again by itself",
    "mounted_token": "have the token of the mounted kubeconfig renewed; it is read again by itself",
    "mounted_authority": "renew the certificate authority of the mounted kubeconfig; it is read again by itself",
    "exec_token": "see why the exec plugin gives no new token: the cluster's problem has its error",
    "gateway_certificate": "replace the file of FAIRLEAD_GATEWAY_CERTIFICATE by a renewed certificate",
}


_LAST_PART = 0.1
"""Of a renewed credential's lifetime; kubelets and certificate managers renew with a fifth or more left."""
_MOST_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Expiry:
    """A credential that ends.

    Attributes:
        kind: one of `client_certificate`, `token`, `authority`, `prometheus_token` and `gateway_certificate`, or of the
            renewed ones: `mounted_certificate`, `mounted_token`, `mounted_authority` and `exec_token`.
        issued_at: of a renewed one; None where it does not say.
    """

    kind: str
    at: datetime
    issued_at: datetime | None = None

    @property
    def label(self) -> str:
        """Return the kind in words."""
        return self.kind.replace("_", " ").capitalize()

    @property
    def is_renewed(self) -> bool:
        """Return whether a program renews it."""
        return self.kind in _RENEWED

    def is_due(self, now: datetime) -> bool:
        """Return whether it ends so soon that its renewal has failed, or that a person has to act within a week."""
        if not self.is_renewed:
            return self.at - now <= URGENT
        life = timedelta(0) if self.issued_at is None else self.at - self.issued_at
        return self.at - now <= life * _LAST_PART


def expiries(cluster: Cluster) -> tuple[Expiry, ...]:
    """Return when the cluster's credentials end; without those that cannot be read now."""
    if cluster.kind == LOCAL:
        return _of_gateway(settings.GATEWAY_CERTIFICATE)
    try:
        stored = _of_stored(cluster.credentials, cluster.prometheus_token)
    except FairleadError:  # encrypted under another secret key, which the cluster's check says
        return ()
    return (*stored, *_of_mounted(cluster), *_of_exec(cluster.exec_token))


def expiry_findings(cluster: Cluster, now: datetime) -> Iterator[Finding]:
    """Yield a finding for each credential that ends within 30 days, and is not ok within 7 days.

    One that is renewed has a finding only where its renewal fails.
    """
    for each in expiries(cluster):
        left, is_due = each.at - now, each.is_due(now)
        if (left > WARN or each.is_renewed) and not is_due:
            continue
        what = each.kind.replace("_", " ")
        when = f"on {each.at:%Y-%m-%d %H:%M} UTC"
        message = f"the {what} expired {when}" if left <= timedelta(0) else f"the {what} expires {when}"
        yield Finding(what, not is_due, message, _REMEDIES[each.kind])


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


def _of_mounted(cluster: Cluster) -> Iterator[Expiry]:
    """Yield the ends of what a mounted kubeconfig has or names; nothing where it cannot be read here."""
    path = (cluster.document or {}).get("connection", {}).get("kubeconfigPath")
    if not path:
        return
    try:
        access = access_to(cluster)
        if not isinstance(access, KubeconfigFile):
            return
        user = mounted_user(access.path, access.context, access.content)
    except FairleadError:  # which the cluster's check says
        return
    for name in ("certificate", "authority"):
        pem = user.embedded.get(name) or _read(user.files.get(name, ""))
        if (life := _life_of_certificates(pem)) is not None:
            yield Expiry(f"mounted_{name}", life[1], life[0])
    token = _read(user.token_file) or user.token
    if (end := _end_of_token(token)) is not None:
        yield Expiry("mounted_token", end, _end_of_token(token, "iat"))


def _of_exec(times: dict[str, str] | None) -> Iterator[Expiry]:
    if times:
        yield Expiry(
            "exec_token", datetime.fromisoformat(times["expires_at"]), datetime.fromisoformat(times["issued_at"])
        )


def _read(path: str) -> str:
    """Return a text of bounded size; empty without a path, and where it cannot be read."""
    try:
        if path:
            with Path(path).open("rb") as file:
                return file.read(_MOST_BYTES).decode("ascii").strip()
    except (OSError, ValueError):
        pass
    return ""


def _of_gateway(path: str) -> tuple[Expiry, ...]:
    """Return the end of the gateway's given certificate; a self-made one is renewed by itself."""
    try:
        at = _end_of_certificates(Path(path).read_text(encoding="ascii")) if path else None
    except (OSError, ValueError):  # read by the agent, which says what is wrong with it
        return ()
    return () if at is None else (Expiry("gateway_certificate", at),)


def _end_of_certificates(pem: str) -> datetime | None:
    """Return the end of the first certificate, which is the server's or client's own; None for none."""
    life = _life_of_certificates(pem)
    return None if life is None else life[1]


def _life_of_certificates(pem: str) -> tuple[datetime, datetime] | None:
    """Return begin and end of the first certificate; None for none."""
    try:
        first = x509.load_pem_x509_certificates(pem.encode())[0] if pem else None
    except ValueError:
        return None
    return None if first is None else (first.not_valid_before_utc, first.not_valid_after_utc)


def _end_of_token(token: str, claim: str = "exp") -> datetime | None:
    """Return `exp` of a JSON Web Token, unverified; None for other tokens and for one without end."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(float(claims[claim]), UTC)
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None
