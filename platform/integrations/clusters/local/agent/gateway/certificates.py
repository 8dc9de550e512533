"""Certificates of the gateway: reads their files, checks them, and sends Envoy what is new and good.

files --every second--> checked --good, and new--> Envoy: new connections get it, open ones go on
                                --bad------------> the pair of before stays; log and status say why
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.envoy import tls as rendered
from integrations.clusters.local.envoy.resources import Kind, Resource
from integrations.clusters.local.tls import BadCertificateError, GatewayTls, Served

log = logging.getLogger(__name__)

_ENDS_SOON = timedelta(days=14)


class Certificates:
    """The certificate that Envoy has, and whether the files have a better one.

    Attributes:
        message: one sentence for the gateway's status; empty where all is well.
    """

    def __init__(self, tls: GatewayTls, discovery: Discovery, changed: Callable[[], None]) -> None:
        self.message = ""
        self._tls, self._discovery, self._changed = tls, discovery, changed
        self._served: Served | None = None

    async def run(self, every_s: float) -> None:
        """Look forever."""
        while True:
            await asyncio.sleep(every_s)
            await self.look()

    async def look(self) -> None:
        """Read the files, and send Envoy what has changed."""
        now = datetime.now(UTC)
        try:
            found = await asyncio.to_thread(self._tls.read, now)
        except BadCertificateError as error:
            self._report(f"{error}; the gateway goes on with {self._present(now)}")
            return
        if found != self._served:
            self._send(found)
        ends_in = found.certificate.expires_at - now
        if refused := self._discovery.refused(Kind.SECRETS):
            self._report(f"Envoy refuses the certificate in {self._tls.certificate}: {refused}")
        elif ends_in < _ENDS_SOON:
            self._report(f"the certificate in {self._tls.certificate} ends in {ends_in.days} days; renew it")
        else:
            self._report("")

    def _send(self, found: Served) -> None:
        pair = found.certificate
        secrets = {rendered.CERTIFICATE: Resource.of(rendered.certificate(pair.chain, pair.key))}
        if found.client_authorities:
            authorities = rendered.client_authorities(found.client_authorities)
            secrets[rendered.CLIENT_AUTHORITIES] = Resource.of(authorities)
        self._discovery.set(Kind.SECRETS, secrets)
        self._served = found
        log.info("the gateway's certificate is valid until %s, SHA-256 %s", pair.expires_at, pair.fingerprint)

    def _present(self, now: datetime) -> str:
        if self._served is None:
            return "none, and refuses connections"
        ends = self._served.certificate.expires_at
        return f"the certificate of before, which {'ended' if ends <= now else 'is valid until'} {ends:%Y-%m-%d %H:%M}"

    def _report(self, message: str) -> None:
        if message != self.message:
            if message:
                log.error("%s", message)
            else:
                log.info("the certificate of the gateway is good again")
            self.message = message
            self._changed()
