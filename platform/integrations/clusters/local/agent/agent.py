"""The agent's loop: read wishes, scale, route, let go, write status. Started by `__main__` in the main thread.

Every round works on the whole state, so that one that fails is repaired by the next. A round begins when something
changed and at the latest after `Timing.poll_s`.
"""

import asyncio
import logging
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from common.errors import Unavailable
from integrations.clusters.base import Component
from integrations.clusters.local.agent.adoption import Earlier
from integrations.clusters.local.agent.discovery import Discovery, discovery_socket
from integrations.clusters.local.agent.gateway import Gateway
from integrations.clusters.local.agent.memory_limit import MemoryPolicy
from integrations.clusters.local.agent.memory_watchdog import MemoryWatchdog, Tenant
from integrations.clusters.local.agent.relay import RELAYED
from integrations.clusters.local.agent.replica import Replica, Workshop
from integrations.clusters.local.agent.replica_memory import ReplicaMemory
from integrations.clusters.local.agent.routing import Router, Routing
from integrations.clusters.local.agent.service import Service
from integrations.clusters.local.agent.sockets import help_of, replicas_folder, takes_sockets
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.envoy.words import Place
from integrations.clusters.local.files import (
    DESIRED_SCHEMA,
    BadFileError,
    ClusterStatus,
    Layout,
    cluster_status_to_json,
    key_of,
    observed_to_json,
    order_from_json,
    read_json,
    wishes_locked,
    write_json,
)
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.records import AGENT, is_alive, read_record
from integrations.clusters.local.runtime import RUNTIME
from integrations.machine import readings
from integrations.machine.limits import Limit, tightest
from integrations.sandbox import ability
from integrations.sandbox.memory_cgroup import MemoryGroups
from serving_runtime.shared.egress import Network

log = logging.getLogger(__name__)

_HEARTBEAT_S = 1.0
Key = tuple[str, str]  # namespace and service


@dataclass(frozen=True, slots=True)
class Settings:
    """What the agent is started with.

    Attributes:
        port: one that is free, or that of the gateway that an earlier agent left.
        groups: where replicas get cgroups, as `limited` says in a part of a sentence.
        earlier: what an earlier agent left with the holder.
    """

    layout: Layout
    host: str
    port: int
    holder: Holder
    groups: MemoryGroups | None = None
    limited: str = ""
    earlier: Earlier = field(default_factory=Earlier)
    timing: Timing = field(default_factory=Timing)
    runtime: tuple[str, ...] = RUNTIME
    egress_allowed: tuple[Network, ...] = ()
    memory: MemoryPolicy = field(default_factory=MemoryPolicy)


class Agent:
    """Runs the services of one cluster folder until it is cancelled or told to stop."""

    def __init__(self, settings: Settings, client: httpx.AsyncClient) -> None:
        self._layout = settings.layout
        self._timing = settings.timing
        self._changed = asyncio.Event()
        self._workshop = Workshop(
            settings.layout,
            settings.timing,
            client,
            self._changed.set,
            settings.holder,
            settings.runtime,
            settings.egress_allowed,
            memory=ReplicaMemory(settings.memory, settings.groups),
        )
        self._limited = settings.limited
        self._earlier = settings.earlier
        self._earlier.clean(self._layout)
        self._discovery = Discovery(discovery_socket(self._layout))
        self._router = Router(self._discovery, patience_s=settings.timing.gateway_s)
        self._gateway = Gateway(
            self._layout,
            self._timing,
            host=settings.host,
            port=settings.port,
            holder=settings.holder,
            changed=self._changed.set,
        )
        self._memory = MemoryWatchdog(settings.memory, settings.holder)
        self._services: dict[Key, Service] = {}
        self._seen: dict[Path, tuple[int, int]] = {}
        self._written: dict[Path, object] = {}
        self._pushed: tuple[Routing, float | None] | None = None
        self._has_routed = False
        self._problem = ""
        self._sandbox = Component("sandbox", ready=False, message="it is being tried out")
        self._limits: tuple[Limit, ...] = ()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then drain and end everything."""
        self._layout.desired.mkdir(parents=True, exist_ok=True)
        runtime = self._workshop.runtime
        self._sandbox, said, inside = await asyncio.gather(
            asyncio.to_thread(_sandbox, self._limited),
            asyncio.to_thread(help_of, runtime),
            asyncio.to_thread(ability.opens_socket_files),
        )
        on_sockets = takes_sockets(runtime, said)
        self._workshop = replace(self._workshop, on_sockets=on_sockets, relays=inside and RELAYED in said)
        if not on_sockets:
            log.info("replicas listen on ports of 127.0.0.1: their runtime's --help offers no fd:N, or it is grpcio's")
        if not self._workshop.relays:
            why = "sockets in files are closed to models here" if RELAYED in said else f"--help offers no {RELAYED}"
            log.info("replicas with a logger or traces have the machine's network, and no relay: %s", why)
        await self._take_up()
        self._read_desired()
        if not self._earlier.gateway_runs:
            self._router.announce(self._routing())
        await self._discovery.start()
        if not self._earlier.programs:
            self._write_status()
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(self._gateway.run()), tasks.create_task(self._beat())]
            background.append(tasks.create_task(self._memory.run(self._tenants, self._timing.memory_s)))
            background.append(tasks.create_task(self._read_limits()))
            while not stop.is_set():
                await self._round()
                await self._pause(stop)
            await self._close()
            for task in background:
                task.cancel()
        if self._workshop.memory.groups is not None:
            await asyncio.to_thread(self._workshop.memory.groups.close)
        await self._discovery.close()
        shutil.rmtree(replicas_folder(self._layout), ignore_errors=True)
        self._layout.cluster_status.unlink(missing_ok=True)

    async def _take_up(self) -> None:
        """Go on with what an earlier agent left, before anything is decided.

        A gateway that runs keeps what it knows: it is sent nothing until it has been seen which replicas are ready.
        """
        since: dict[Key, float] = {}
        for key, replicas in self._earlier.replicas(self._workshop).items():
            was = self._earlier.observed(self._layout, key)
            service = self._services[key] = Service(self._workshop, *key)
            service.take_up(replicas, was)
            service.deleted = not self._layout.desired_file(*key).exists()
            if was is not None:
                since |= {(key[0], each.name): each.gateway_since for each in was.revisions if each.gateway_since}
        if (process := self._earlier.gateway(self._workshop.holder)) is not None:
            self._gateway.adopt(process)
        looking = [replica.looked() for service in self._services.values() for replica in service.replicas()]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*looking), self._timing.probe_timeout_s)
        known = [revision for service in self._services.values() for revision in service.endpoints()]
        self._router.take_up(known, since)
        if self._earlier.programs:
            log.info("goes on with %s", ", ".join(sorted(self._earlier.programs)))

    async def _round(self) -> None:
        self._changed.clear()
        self._read_desired()
        for service in self._services.values():
            service.scale()
        await self._route()
        for key, service in list(self._services.items()):
            if service.gone:
                self._forget(key)
        self._write_status()

    async def _pause(self, stop: asyncio.Event) -> None:
        waits = [asyncio.create_task(event.wait()) for event in (self._changed, stop)]
        await asyncio.wait(waits, timeout=self._timing.poll_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    # --- wishes -----------------------------------------------------------------------------------------------------

    def _read_desired(self) -> None:
        paths = sorted(self._layout.desired.glob("[!.]*.json"))
        for path in paths:
            with suppress(FileNotFoundError):
                stat = path.stat()
                if self._seen.get(path) != (stat.st_mtime_ns, stat.st_ino):
                    self._read(path)
                    self._seen[path] = (stat.st_mtime_ns, stat.st_ino)
        for path in set(self._seen) - set(paths):  # taken away by hand
            del self._seen[path]
            service = self._services.get(key_of(path))
            if service is not None:
                service.take(service.desired, deleted=True)

    def _read(self, path: Path) -> None:
        key = key_of(path)
        service = self._services.setdefault(key, Service(self._workshop, *key))
        try:
            order = order_from_json(read_json(path, DESIRED_SCHEMA))
            if (order.desired.namespace, order.desired.service) != key:
                raise BadFileError(f"it is of {order.desired.namespace}/{order.desired.service}")
        except BadFileError as error:
            service.complaint = f"desired/{path.name} is ignored: {error}"
            log.error("%s", service.complaint)
            return
        service.complaint = ""
        service.take(order.desired, deleted=order.deleted)

    def _forget(self, key: Key) -> None:
        """Drop a deleted service with its files; a wish that came meanwhile is found by the next round.

        The wish goes before the status: who sees that the service is gone may wish for it anew, with any generation.
        """
        del self._services[key]
        place = self._layout.desired_file(*key)
        self._seen.pop(place, None)
        with suppress(FileNotFoundError, BadFileError), wishes_locked(self._layout):
            if order_from_json(read_json(place, DESIRED_SCHEMA)).deleted:
                place.unlink()
        shutil.rmtree(self._layout.payloads_of(*key), ignore_errors=True)
        status = self._layout.status_file(*key)
        status.unlink(missing_ok=True)
        self._written.pop(status, None)

    # --- routes -----------------------------------------------------------------------------------------------------

    async def _route(self) -> None:
        """Make the gateway route by what is ready, then let go what it no longer needs."""
        admin = self._gateway.admin
        if admin is None:
            self._pushed = None
            return
        wanted = self._routing()
        asked = (wanted, self._gateway.started_at)
        try:
            if self._pushed != asked:
                await self._router.push(wanted)
                self._pushed = asked
                self._has_routed = True
            leaving = [replica for service in self._services.values() for replica in service.leaving()]
            if leaving:
                busy = {
                    place
                    for hosts in (await admin.hosts()).values()
                    for place, host in hosts.items()
                    if host.active_requests
                }
                self._let_go(leaving, wanted, busy)
            self._problem = ""
        except Unavailable as error:
            self._pushed = None
            if self._problem != error.message:
                log.warning("%s", error.message)
            self._problem = error.message

    def _routing(self) -> Routing:
        services = self._services.values()
        return Routing(
            services=tuple(service.route() for service in services if not service.deleted),
            revisions=tuple(revision for service in services for revision in service.endpoints()),
        )

    def _let_go(self, leaving: list[Replica], routed: Routing, busy: set[Place]) -> None:
        """End the leaving replicas that the gateway drains and that have nothing in flight, or had time enough."""
        draining = {endpoint for revision in routed.revisions for endpoint in revision.endpoints if endpoint.draining}
        for replica in leaving:
            if replica.endpoint is not None and replace(replica.endpoint, draining=True) in draining:
                replica.let_go(idle=not busy & {replica.endpoint.http, replica.endpoint.grpc})

    # --- status -----------------------------------------------------------------------------------------------------

    def _write_status(self) -> None:
        """Write what has changed, the gateway first: who reads that it routes to a service reads that it is ready."""
        self._write_cluster_status()
        if self._earlier.gateway_runs and not (self._has_routed or self._problem):
            return  # what the earlier agent said still holds
        up = self._gateway.admin is not None and self._pushed is not None
        confirmed = {(route.namespace, route.service): route for route in self._router.confirmed} if up else {}
        stats_url = self._gateway.admin.stats_url if self._gateway.admin else ""
        for key, service in self._services.items():
            observed = service.observed(confirmed.get(key), self._router.since, stats_url)
            path = self._layout.status_file(*key)
            if self._written.get(path) != observed:
                write_json(path, observed_to_json(observed))
                self._written[path] = observed

    def _write_cluster_status(self) -> None:
        gateway = self._gateway.component()
        if self._problem:
            gateway = replace(gateway, message=self._problem)
        if self._written.get(self._layout.cluster_status) != gateway:
            self._beat_once(gateway)

    def _beat_once(self, gateway: Component) -> None:
        status = ClusterStatus(time.time(), os.getpid(), self._gateway.url, (gateway, self._sandbox), self._limits)
        write_json(self._layout.cluster_status, cluster_status_to_json(status))
        self._written[self._layout.cluster_status] = gateway

    async def _beat(self) -> None:
        """Say again and again that the agent lives, in rounds that take long too."""
        while True:
            self._written.pop(self._layout.cluster_status, None)
            self._write_cluster_status()
            await asyncio.sleep(_HEARTBEAT_S)

    async def _read_limits(self) -> None:
        """Look at the limits of this machine again and again; the next heartbeat has what was found."""
        while True:
            said = {limit.name: limit.level for limit in self._limits}
            self._limits = await asyncio.to_thread(_limits, self._layout)
            for limit in self._limits:
                if limit.sentence and said.get(limit.name) is not limit.level:
                    log.warning("%s", limit.sentence)
            await asyncio.sleep(self._timing.limits_s)

    def _tenants(self) -> list[Tenant]:
        replicas = (replica for service in self._services.values() for replica in service.replicas())
        return [tenant for replica in replicas if (tenant := replica.tenant()) is not None]

    async def _close(self) -> None:
        await self._gateway.drain(self._timing.drain_s)
        replicas = [replica for service in self._services.values() for replica in service.replicas()]
        await asyncio.gather(*(replica.end() for replica in replicas))


def _limits(layout: Layout) -> tuple[Limit, ...]:
    """Return the limits of this machine, as near as the processes in the folder's records are to them."""
    records = ((path.stem, read_record(path)) for path in layout.run.glob("*.json"))
    alive = {name: record.pid for name, record in records if record is not None and is_alive(record)}
    parts = {name: pid for name, pid in alive.items() if pid is not None}
    return tightest(readings.read({AGENT: os.getpid(), **parts}))


def _sandbox(limited: str) -> Component:
    """Find out what this machine can give models, and log what it cannot; `limited` says how it limits memory."""
    ready, message = ability.described()
    log.log(logging.INFO if message == ability.WHOLE else logging.WARNING, "%s; %s", message, limited)
    return Component("sandbox", ready=ready, message=f"{message}; {limited}")
