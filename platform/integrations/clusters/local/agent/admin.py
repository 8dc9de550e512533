"""Envoy's admin page, as far as the agent reads it. It listens on a Unix socket that only this user may open."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from common.errors import Unavailable
from integrations.clusters.local.envoy.listener import STAT_PREFIX
from integrations.clusters.local.envoy.routes import ROUTES_NAME
from integrations.clusters.local.files import Layout
from integrations.pages import unix_url

_ROUTES = f"http.{STAT_PREFIX}.rds.{ROUTES_NAME}"
_LONGEST_PATH_BYTES = 107
"""Linux: unix(7), `sun_path` without its closing zero."""


def admin_socket(layout: Layout) -> Path:
    """Return where the admin page listens: beside Envoy's files, or in a folder with a short path that is made here.

    Raises:
        PermissionError: somebody else has made that folder, or may enter it.
    """
    name = "admin.sock"
    if _fits(layout.envoy / name):
        return layout.envoy / name
    own = f"fairlead-{os.getuid()}-{hashlib.sha256(os.fsencode(layout.envoy)).hexdigest()[:16]}"
    places = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]  # noqa: S108 - a folder of its own there
    folder = next(Path(place, own) for place in places if place and _fits(Path(place, own, name)))
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not a folder that this user alone may enter; remove it")
    return folder / name


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= _LONGEST_PATH_BYTES


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

    async def hosts(self) -> dict[str, dict[int, "Host"]]:
        """Return every cluster's hosts by port."""
        found = (await self._get("/clusters", format="json")).json().get("cluster_statuses", [])
        return {
            cluster["name"]: {
                host["address"]["socket_address"]["port_value"]: Host.read(host)
                for host in cluster.get("host_statuses", [])
                if "socket_address" in host["address"]  # else the listener inside Envoy, through which copies go
            }
            for cluster in found
        }

    async def routes_version(self) -> str:
        """Return the version of the route table in use; empty before the first."""
        page = (await self._get("/stats", filter=f"^{_ROUTES}\\.version_text$", type="TextReadouts")).text
        return page.partition(":")[2].strip().strip('"')

    async def idle(self) -> bool:
        """Return whether no request of a client is in flight."""
        page = (await self._get("/stats", filter=rf"^http\.{STAT_PREFIX}\.downstream_rq_active$")).text
        return int(page.partition(":")[2].strip() or 0) == 0

    async def close_listener(self) -> None:
        """Take no new connections; those that are open go on."""
        await self._request("POST", "/drain_listeners", {})

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
        """Return it out of the admin page's JSON, where zeros are left out."""
        counts = {stat["name"]: int(stat.get("value", 0)) for stat in host["stats"]}
        return cls(
            status=host["health_status"].get("eds_health_status", "HEALTHY"),
            active_requests=counts.get("rq_active", 0) + counts.get("rq_pending_active", 0),
        )
