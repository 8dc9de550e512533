"""Envoy admin interface client, and the gateway's Unix sockets, which only this user may open."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from common.errors import Unavailable
from integrations.clusters.local.agent.sockets import short_folder
from integrations.clusters.local.envoy.listener import STAT_PREFIX
from integrations.clusters.local.envoy.values import Place
from integrations.clusters.local.files import Layout
from integrations.metrics.pages import unix_url


def admin_socket(layout: Layout) -> Path:
    """Return the path of the admin page's socket; raises PermissionError as `short_folder`."""
    name = "admin.sock"
    return short_folder(layout.envoy, name) / name


def own_socket(layout: Layout) -> Path:
    """Return the path of the socket where a gateway with TLS takes the requests of this machine's control plane.

    Its certificate is for the names that clients use, and it may ask for theirs. Raises PermissionError as
    `short_folder`.
    """
    name = "own.sock"
    return short_folder(layout.envoy, name) / name


def socket_of_gateway(home: Path) -> Path | None:
    """Return the path of that socket of a home's gateway; None where none exists."""
    try:
        found = own_socket(Layout(home / "cluster"))
    except OSError:
        return None
    return found if found.is_socket() else None


class Admin:
    """The admin page behind a socket; all but `ready` raise Unavailable where Envoy does not answer."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.stats_url = unix_url(socket, "/stats/prometheus")
        self._client = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(socket)), base_url="http://envoy")

    async def close(self) -> None:
        """Close the connections to it."""
        await self._client.aclose()

    async def ready(self) -> bool:
        """Return whether Envoy answers and takes requests."""
        try:
            return (await self._client.get("/ready", timeout=2.0)).status_code == 200
        except httpx.HTTPError:
            return False

    async def hosts(self) -> dict[str, dict[Place, "Host"]]:
        """Return every cluster's hosts by their places."""
        found = (await self._get("/clusters", format="json")).json().get("cluster_statuses", [])
        return {
            cluster["name"]: {
                place: Host.read(host)
                for host in cluster.get("host_statuses", [])
                if (place := _place(host["address"])) is not None
            }
            for cluster in found
        }

    async def idle(self) -> bool:
        """Return whether no request of a client is in flight."""
        page = (await self._get("/stats", filter=rf"^http\.{STAT_PREFIX}\.downstream_rq_active$")).text
        return int(page.partition(":")[2].strip() or 0) == 0

    async def close_listener(self) -> None:
        """Take no new connections; open ones go on."""
        await self._request("POST", "/drain_listeners", {})

    async def reopen_logs(self) -> None:
        """Have the access log opened by its name, which a new file may have."""
        await self._request("POST", "/reopen_logs", {})

    async def _get(self, path: str, **query: str) -> httpx.Response:
        return await self._request("GET", path, query)

    async def _request(self, method: str, path: str, query: Mapping[str, str]) -> httpx.Response:
        try:
            answer = await self._client.request(method, path, params=query, timeout=2.0)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise Unavailable(
                f"the gateway's admin page {path} cannot be read: {error or type(error).__name__}"
            ) from error
        return answer


class Host:
    """One endpoint as Envoy sees it."""

    def __init__(self, status: str, active_requests: int) -> None:
        self.status = status
        self.active_requests = active_requests

    @classmethod
    def read(cls, host: Mapping[str, Any]) -> "Host":
        """Parse it from the admin page's JSON, where zeros are left out."""
        counts = {stat["name"]: int(stat.get("value", 0)) for stat in host["stats"]}
        return cls(
            status=host["health_status"].get("eds_health_status", "HEALTHY"),
            active_requests=counts.get("rq_active", 0) + counts.get("rq_pending_active", 0),
        )


def _place(address: Mapping[str, Any]) -> Place | None:
    """Return a host's address; None for the listener inside Envoy, through which copies go."""
    if "pipe" in address:
        return str(address["pipe"]["path"])
    return int(address["socket_address"]["port_value"]) if "socket_address" in address else None
