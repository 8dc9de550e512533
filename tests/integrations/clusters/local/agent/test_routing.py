"""The order of updates, seen from Envoy's side: what the files say each time the router asks what Envoy knows."""

import json
from pathlib import Path
from typing import Any

import pytest

from common.errors import Unavailable
from integrations.clusters.local.agent.admin import Host
from integrations.clusters.local.agent.routing import Router, Routing
from integrations.clusters.local.envoy.words import Backend, Endpoint, RevisionEndpoints, ServiceRoute

OLD, NEW = Endpoint(1001, 1002), Endpoint(2001, 2002)


class FakeEnvoy:
    """Takes up files when asked, like Envoy a moment after they changed; `deaf_to` names what it does not take up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.deaf_to = ""
        self.seen: list[str] = []

    def read(self, place: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / place).read_text()))

    async def hosts(self) -> dict[str, dict[int, Host]]:
        found: dict[str, dict[int, Host]] = {}
        for cluster in self.read("clusters.json")["resources"]:
            path = Path(cluster["eds_cluster_config"]["eds_config"]["path_config_source"]["path"])
            endpoints = self.read(str(path))["resources"][0]["endpoints"][0]["lb_endpoints"]
            found[cluster["name"]] = {
                each["endpoint"]["address"]["socket_address"]["port_value"]: Host(each["health_status"], 0)
                for each in endpoints
            }
        self._note(found)
        return {} if self.deaf_to == "endpoints" else found

    async def routes_version(self) -> str:
        self.seen.append("asked for the routes")
        return "" if self.deaf_to == "routes" else str(self.read("routes.json")["version_info"])

    def _note(self, found: dict[str, dict[int, Host]]) -> None:
        ports = {
            port: host.status for name, hosts in found.items() if name.endswith("http") for port, host in hosts.items()
        }
        routed = sorted(
            name for name in ("r-00001", "r-00002") if f"{name}/http" in json.dumps(self.read("routes.json"))
        )
        self.seen.append(f"endpoints {ports}, routed {routed}")


@pytest.fixture
def router(tmp_path: Path) -> Router:
    (tmp_path / "endpoints").mkdir()
    return Router(tmp_path, patience_s=0.05)


def wanted(*, endpoints: dict[str, tuple[Endpoint, ...]], shares: dict[str, int]) -> Routing:
    backends = tuple(Backend(name, name[-1], share) for name, share in shares.items())
    return Routing(
        services=(ServiceRoute("default", "digits", backends),),
        revisions=tuple(RevisionEndpoints("default", name, found) for name, found in endpoints.items()),
    )


def draining(endpoint: Endpoint) -> Endpoint:
    return Endpoint(endpoint.http, endpoint.grpc, draining=True)


FIRST = wanted(endpoints={"r-00001": (OLD,)}, shares={"r-00001": 100})
BOTH = wanted(endpoints={"r-00001": (draining(OLD),), "r-00002": (NEW,)}, shares={"r-00002": 100})
SECOND = wanted(endpoints={"r-00002": (NEW,)}, shares={"r-00002": 100})


async def test_endpoints_come_before_routes_and_drain_after(router, tmp_path):
    envoy = FakeEnvoy(tmp_path)
    await router.push(FIRST, envoy)
    envoy.seen.clear()
    await router.push(BOTH, envoy)
    assert envoy.seen == [
        "endpoints {1001: 'HEALTHY', 2001: 'HEALTHY'}, routed ['r-00001']",
        "asked for the routes",
        "endpoints {1001: 'DRAINING', 2001: 'HEALTHY'}, routed ['r-00002']",
    ]


async def test_clusters_go_last_with_their_files(router, tmp_path):
    envoy = FakeEnvoy(tmp_path)
    await router.push(BOTH, envoy)
    envoy.seen.clear()
    await router.push(SECOND, envoy)
    assert envoy.seen[0] == "endpoints {1001: 'DRAINING', 2001: 'HEALTHY'}, routed ['r-00002']"
    assert [cluster["name"] for cluster in envoy.read("clusters.json")["resources"]] == [
        f"default/r-00002/{use}" for use in ("http", "meta", "grpc")
    ]
    assert {path.name.split(".")[1] for path in (tmp_path / "endpoints").iterdir()} == {"r-00002"}
    assert list(router.since) == [("default", "r-00002")]


async def test_endpoint_of_a_dead_replica_goes_at_once(router, tmp_path):
    envoy = FakeEnvoy(tmp_path)
    await router.push(wanted(endpoints={"r-00001": (OLD, NEW)}, shares={"r-00001": 100}), envoy)
    envoy.seen.clear()
    await router.push(FIRST, envoy)
    assert envoy.seen[0] == "endpoints {1001: 'HEALTHY'}, routed ['r-00001']"


async def test_nothing_new_writes_nothing(router, tmp_path):
    envoy = FakeEnvoy(tmp_path)
    await router.push(BOTH, envoy)
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*.json")}
    await router.push(BOTH, envoy)
    assert {path: path.stat().st_ino for path in tmp_path.rglob("*.json")} == before


@pytest.mark.parametrize("what", ["endpoints", "routes"])
async def test_what_envoy_does_not_take_up_is_said_and_done_later(router, tmp_path, what):
    envoy = FakeEnvoy(tmp_path)
    await router.push(FIRST, envoy)
    envoy.deaf_to = what
    with pytest.raises(Unavailable, match=f"did not take up the {what} within 0.05 s"):
        await router.push(BOTH, envoy)
    assert router.confirmed == FIRST.services
    assert ("r-00002/http" in json.dumps(envoy.read("routes.json"))) == (what == "routes")
    envoy.deaf_to = ""
    await router.push(BOTH, envoy)
    assert router.confirmed == BOTH.services
    assert envoy.seen[-1] == "endpoints {1001: 'DRAINING', 2001: 'HEALTHY'}, routed ['r-00002']"
