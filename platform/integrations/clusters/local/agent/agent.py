"""Agent loop: read orders, scale, route, let go, write status. Started by `__main__` in the main thread.

A round begins when something changed, and at the latest after `Timing.round_s`. It handles the services that changed,
so that one among thousands costs little more than one alone, and all others by turns; the gateway always gets the whole
routing, so that the next round repairs a failed one.
"""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from common.errors import Unavailable
from integrations.clusters.base import Component
from integrations.clusters.local.access_log_files import AccessLogFiles
from integrations.clusters.local.agent.adoption import Earlier
from integrations.clusters.local.agent.feedback_intake import Intake, feedback_socket
from integrations.clusters.local.agent.gateway.certificates import Certificates
from integrations.clusters.local.agent.gateway.discovery import Discovery, discovery_socket
from integrations.clusters.local.agent.gateway.envoy_admin import Admin
from integrations.clusters.local.agent.gateway.envoy_process import Gateway
from integrations.clusters.local.agent.gateway.routing import Router, Routing
from integrations.clusters.local.agent.gateway.row_counter import RowCounter
from integrations.clusters.local.agent.gateway.row_limits import RowLimits
from integrations.clusters.local.agent.orders import Key, Orders
from integrations.clusters.local.agent.pools.members import Pools, is_same_but_copies
from integrations.clusters.local.agent.replicas.memory_limit import MemoryPolicy
from integrations.clusters.local.agent.replicas.memory_watchdog import MemoryWatchdog, Tenant
from integrations.clusters.local.agent.replicas.relay import RELAYED
from integrations.clusters.local.agent.replicas.replica import Replica
from integrations.clusters.local.agent.replicas.replica_memory import ReplicaMemory
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.agent.service import Service
from integrations.clusters.local.agent.sockets import help_of, replicas_folder, takes_sockets
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.documents import cluster_status_to_json, observed_to_json
from integrations.clusters.local.envoy.values import Place, RevisionEndpoints, ServiceRoute
from integrations.clusters.local.feedback_spool import Spool
from integrations.clusters.local.files import BadFileError, ClusterStatus, Layout, Order
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.pid_files import AGENT, is_alive, read_record
from integrations.clusters.local.runtime import RUNTIME
from integrations.clusters.local.state_files import StateFiles
from integrations.clusters.local.tls import GatewayTls
from integrations.machine import readings
from integrations.machine.limits import Limit, tightest
from integrations.sandbox import ability
from integrations.sandbox.command import mode_of
from integrations.sandbox.memory_cgroup import MemoryGroups
from integrations.sandbox.policy import Mode
from serving_runtime.shared.egress import Network

log = logging.getLogger(__name__)

_HEARTBEAT_S = 1.0
_REST = 4.0
"""Envoy is not queried again for so many times as long as it took to list its hosts."""
_LONGEST_PAUSE_S = 0.5
_LOOK_AGAIN_S = 9.0
"""Every service and every written file is looked at so often, for changes that nothing reported."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Start options of the agent.

    Attributes:
        port: one that is free, or that of the gateway that an earlier agent left.
        groups: where replicas get cgroups, as `limited` says in a part of a sentence.
        earlier: what an earlier agent left with the holder, running or ended.
        tls: of the gateway; None for plain HTTP.
        program_folders: as of `Workshop`.
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
    tls: GatewayTls | None = None
    program_folders: tuple[Path, ...] = ()


class Agent:
    """Runs the services of one cluster folder until it is cancelled or stopped."""

    def __init__(self, settings: Settings) -> None:
        self._layout = settings.layout
        self._timing = settings.timing
        self._files = StateFiles(settings.layout.home)
        self._changed = asyncio.Event()
        self._workshop = Workshop(
            settings.layout,
            settings.timing,
            self._changed.set,
            settings.holder,
            self._files,
            settings.runtime,
            settings.egress_allowed,
            memory=ReplicaMemory(settings.memory, settings.groups),
            program_folders=settings.program_folders,
        )
        self._limited = settings.limited
        self._earlier = settings.earlier
        self._pooled = self._earlier.pooled(self._layout)
        self._earlier.clean(self._layout, self._pooled)
        self._discovery = Discovery(discovery_socket(self._layout), self._wake)
        self._router = Router(self._discovery, patience_s=settings.timing.gateway_s)
        self._gateway = Gateway(
            self._layout,
            self._timing,
            host=settings.host,
            port=settings.port,
            holder=settings.holder,
            files=self._files,
            changed=self._changed.set,
            tls=settings.tls,
        )
        self._intake = Intake(Spool(self._layout.feedback), feedback_socket(self._layout))
        self._rows = RowCounter(AccessLogFiles(self._layout.access_log).current, self._router.refuse)
        self._certificates = None
        if settings.tls is not None:
            self._certificates = Certificates(settings.tls, self._discovery, self._changed.set)
        self._memory = MemoryWatchdog(settings.memory, settings.holder)
        self._pools = Pools()
        self._services: dict[Key, Service] = {}
        self._orders = Orders(self._layout)
        self._touched: set[Key] = set()
        self._copied: set[Key] = set()  # touched by a change of copies, which concerns no other services of their pools
        self._routes: dict[Key, ServiceRoute] = {}
        self._endpoints: dict[Key, tuple[RevisionEndpoints, ...]] = {}
        self._unwritten: set[Key] = set()
        self._routed_by = False, ""
        self._mended_at = self._looked_at = asyncio.get_running_loop().time()
        self._to_look_at: Iterator[Key] = iter(())
        self._written: dict[Path, object] = {}
        self._pushed: tuple[Routing, float | None] | None = None
        self._has_routed = False
        self._hosts_again_at = 0.0
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
        own_networks = inside or mode_of(os.environ) is Mode.OFF
        relays = inside and RELAYED in said
        self._workshop = replace(self._workshop, on_sockets=on_sockets, relays=relays, own_networks=own_networks)
        if not on_sockets:
            log.info("replicas listen on ports of 127.0.0.1: their runtime's --help offers no fd:N, or it is grpcio's")
        if not self._workshop.relays:
            why = "sockets in files are closed to models here" if RELAYED in said else f"--help offers no {RELAYED}"
            log.info("replicas with a logger or traces have the machine's network, and no relay: %s", why)
        await self._take_up()
        self._read_orders()
        if not self._earlier.gateway_runs:
            self._find_routes(self._services)
            self._router.announce(self._routing())
        if self._certificates is not None:
            await self._certificates.look()
        await self._discovery.start()
        if not self._earlier.programs:
            self._write_status()
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(self._gateway.run()), tasks.create_task(self._gateway.rotate_log())]
            background.append(tasks.create_task(self._beat()))
            background.append(tasks.create_task(self._memory.run(self._tenants, self._timing.memory_s)))
            background.append(tasks.create_task(self._read_limits()))
            background.append(tasks.create_task(self._rows.run(self._timing.rows_s)))
            background.append(tasks.create_task(self._intake.run()))
            if self._certificates is not None:
                background.append(tasks.create_task(self._certificates.run(self._timing.certificates_s)))
            follow = self._orders.follow(self._changed.set, every_s=self._timing.desired_s)
            background.append(tasks.create_task(follow))
            background.append(tasks.create_task(self._follow(stop)))
            while not stop.is_set():
                began = time.monotonic()
                await self._round()
                await self._pause(time.monotonic() - began)
            await self._close()
            for task in background:
                task.cancel()
        if self._workshop.memory.groups is not None:
            await asyncio.to_thread(self._workshop.memory.groups.close)
        await self._discovery.close()
        shutil.rmtree(replicas_folder(self._layout), ignore_errors=True)
        self._files.remove(self._layout.cluster_status)

    async def _take_up(self) -> None:
        """Take over an earlier agent's processes, before any decision.

        A running gateway keeps what it knows: it is sent nothing until it is known which replicas are ready.
        """
        since: dict[Key, float] = {}
        for key, replicas in self._earlier.replicas(self._workshop).items():
            was = self._earlier.observed(self._layout, key)
            service = self._services[key] = self._service(key)
            service.take_up(replicas, was)
            service.deleted = not self._layout.desired_file(*key).exists()
            if was is not None:
                since |= {(key[0], each.name): each.gateway_since for each in was.revisions if each.gateway_since}
        for key, was in self._pooled.items():
            self._services.setdefault(key, self._service(key)).take_up((), was)
            since |= {(key[0], each.name): each.gateway_since for each in was.revisions if each.gateway_since}
        if (process := self._earlier.gateway(self._workshop.holder, self._files)) is not None:
            self._gateway.adopt(process, holds_requests=self._earlier.gateway_holds)
        looking = [replica.looked() for service in self._services.values() for replica in service.replicas()]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*looking), self._timing.probe_timeout_s)
        known = [revision for service in self._services.values() for revision in service.endpoints()]
        for (namespace, _), was in self._pooled.items():
            known += [
                RevisionEndpoints(namespace, each.name, pooled=True) for each in was.revisions if each.gateway_since
            ]
        self._router.take_up(known, since)
        self._touched |= self._services.keys()
        if self._earlier.programs:
            log.info("goes on with %s", ", ".join(sorted(self._earlier.programs)))

    async def _round(self) -> None:
        self._changed.clear()
        self._read_orders()
        touched = self._taken()
        for key in touched:
            self._scale(key)
        await self._route(touched)
        self._unwritten |= touched
        for key in touched:
            if self._services[key].gone:
                self._forget(key)
        self._write_status()

    def _scale(self, key: Key) -> None:
        """Bring a service to its desired state; where a file or folder cannot be made, a later round tries again."""
        self._services[key].shares_clusters = self._gateway.holds_requests
        if not self._gateway.holds_requests:
            self._services[key].stay_awake(time.time())
        try:
            self._services[key].scale()
        except OSError as error:
            log.error("service %s waits: %s", "/".join(key), error)

    def _service(self, key: Key) -> Service:
        """Return a new service, whose replicas touch it when they change."""
        return Service(replace(self._workshop, changed=partial(self._touch, key)), self._pools, *key)

    def _touch(self, key: Key) -> None:
        self._touched.add(key)
        self._changed.set()

    def _wake(self, cluster: str) -> None:
        """Start the first replica of the revision of this cluster, for which requests wait."""
        for key, service in self._services.items():
            if cluster.startswith(f"{key[0]}/") and service.wake(cluster, time.time()):
                log.info("a request wakes service %s", "/".join(key))
                self._touch(key)

    def _taken(self) -> set[Key]:
        """Return the services of this round: the touched ones, and those whose turn it is to be looked at."""
        now = asyncio.get_running_loop().time()
        if now - self._mended_at >= _LOOK_AGAIN_S:
            self._mended_at = now
            self._files.mend()
        touched = self._touched | self._next(now)
        touched |= self._pools.followers(touched) | self._copied
        self._touched, self._copied = set(), set()
        return touched & self._services.keys()

    def _next(self, now: float) -> set[Key]:
        """Return the services whose turn it is: over `_LOOK_AGAIN_S` all, so that no round takes long for many."""
        number = int(len(self._services) * (now - self._looked_at) / _LOOK_AGAIN_S)
        if not number:
            return set()
        self._looked_at = now
        found = set(islice(self._to_look_at, number))
        if len(found) < number:
            self._to_look_at = iter(list(self._services))
            found |= set(islice(self._to_look_at, number - len(found)))
        return found

    async def _pause(self, took_s: float) -> None:
        """Wait for a change, or for the next round: soon while a replica leaves or waits for Envoy.

        Tasks of services, such as loads, get as long as the last round took, which is long with many services.
        """
        await asyncio.sleep(min(took_s, _LONGEST_PAUSE_S))
        is_moving = bool(self._leaving()) or self._pushed is None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timing.poll_s if is_moving else self._timing.round_s):
                await self._changed.wait()

    def _leaving(self) -> list[Replica]:
        return [replica for service in self._services.values() for replica in service.leaving()]

    async def _follow(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._changed.set()

    # --- orders -----------------------------------------------------------------------------------------------------

    def _read_orders(self) -> None:
        self._orders.read_keys()
        for key, order in self._orders.changed():
            service = self._services.get(key)
            if order is None:
                if service is not None:
                    service.take(service.desired, deleted=True)
            else:
                if service is None:
                    service = self._services[key] = self._service(key)
                was = service.desired, service.deleted, service.complaint
                self._take(service, order)
                self._copied |= self._pools.take_copies(key, service.desired)
                is_same = was[1:] == (service.deleted, service.complaint)
                if is_same and is_same_but_copies(was[0], service.desired):
                    self._copied.add(key)
                    continue
            self._touched.add(key)

    def _take(self, service: Service, order: Order | BadFileError) -> None:
        if isinstance(order, BadFileError):
            name = self._layout.desired_file(service.namespace, service.name).name
            service.complaint = f"desired/{name} is ignored: {order}"
            log.error("%s", service.complaint)
        else:
            service.complaint = ""
            service.take(order.desired, deleted=order.deleted)

    def _forget(self, key: Key) -> None:
        """Drop a deleted service with its files; an order that came meanwhile is found by the next round.

        The order goes before the status: a client that sees that the service is gone may create it again, with any
        generation.
        """
        del self._services[key]
        self._endpoints.pop(key, None)
        self._routes.pop(key, None)
        self._orders.forget(key)
        shutil.rmtree(self._layout.payloads_of(*key), ignore_errors=True)
        status = self._layout.status_file(*key)
        self._files.remove(status)
        self._written.pop(status, None)

    # --- routes -----------------------------------------------------------------------------------------------------

    async def _route(self, touched: Iterable[Key]) -> None:
        """Route to the ready replicas, then let go those that the gateway no longer needs."""
        self._find_routes(touched)
        admin = self._gateway.admin
        if admin is None:
            self._pushed = None
            return
        wanted = self._routing()
        asked = (wanted, self._gateway.started_at)
        try:
            if self._pushed != asked:
                self._rows.limit(RowLimits.of(wanted.services, wanted.keys))
                await self._router.push(wanted)
                self._pushed = asked
                self._has_routed = True
            if (leaving := self._leaving()) and time.monotonic() >= self._hosts_again_at:
                self._let_go(leaving, wanted, await self._busy(admin))
            self._problem = ""
        except Unavailable as error:
            self._pushed = None
            if self._problem != error.message:
                log.warning("%s", error.message)
            self._problem = error.message

    async def _busy(self, admin: Admin) -> set[Place]:
        """Return where requests are in flight. With thousands of services Envoy takes long, so it is queried less."""
        asked_at = time.monotonic()
        hosts = await admin.hosts()
        self._hosts_again_at = time.monotonic() + _REST * (time.monotonic() - asked_at)
        return {place for found in hosts.values() for place, host in found.items() if host.active_requests}

    def _find_routes(self, touched: Iterable[Key]) -> None:
        for key in touched:
            service = self._services[key]
            self._endpoints[key] = tuple(service.endpoints())
            self._routes.pop(key, None)
            if not service.deleted:
                self._routes[key] = service.route()

    def _routing(self) -> Routing:
        revisions = tuple(revision for found in self._endpoints.values() for revision in found)
        return Routing(tuple(self._routes.values()), revisions, self._orders.keys)

    def _let_go(self, leaving: list[Replica], routed: Routing, busy: set[Place]) -> None:
        """End the leaving replicas that the gateway drains and that are idle, or past their time."""
        draining = {endpoint for revision in routed.revisions for endpoint in revision.endpoints if endpoint.draining}
        for replica in leaving:
            if replica.endpoint is not None and replace(replica.endpoint, draining=True) in draining:
                replica.let_go(idle=not busy & {replica.endpoint.http, replica.endpoint.grpc})

    # --- status -----------------------------------------------------------------------------------------------------

    def _write_status(self) -> None:
        """Write changes, the gateway first: a reader that sees its route to a service also sees that it is ready."""
        self._write_cluster_status()
        if self._earlier.gateway_runs and not (self._has_routed or self._problem):
            return  # the earlier agent's status still holds
        up = self._gateway.admin is not None and self._pushed is not None
        stats_url = self._gateway.admin.stats_url if self._gateway.admin else ""
        if self._routed_by != (up, stats_url):
            self._routed_by, self._unwritten = (up, stats_url), set(self._services)
        if not self._unwritten:
            return
        confirmed = {(route.namespace, route.service): route for route in self._router.confirmed} if up else {}
        for key in self._unwritten & self._services.keys():
            observed = self._services[key].observed(confirmed.get(key), self._router.since, stats_url)
            path = self._layout.status_file(*key)
            if self._written.get(path) != observed:
                self._files.put_json(path, observed_to_json(observed))
                self._written[path] = observed
        if up:
            self._unwritten.clear()

    def _write_cluster_status(self) -> None:
        gateway = self._gateway.component()
        if self._problem:
            gateway = replace(gateway, message=self._problem)
        elif self._certificates is not None and self._certificates.message:
            gateway = replace(gateway, message=self._certificates.message)
        if self._written.get(self._layout.cluster_status) != gateway:
            self._beat_once(gateway)

    def _beat_once(self, gateway: Component) -> None:
        parts = [each for each in (gateway, self._sandbox, self._files.component) if each is not None]
        status = ClusterStatus(time.time(), os.getpid(), self._gateway.url, tuple(parts), self._limits)
        self._files.put_json(self._layout.cluster_status, cluster_status_to_json(status))
        self._written[self._layout.cluster_status] = gateway

    async def _beat(self) -> None:
        """Write the heartbeat periodically, also during long rounds."""
        while True:
            self._router.forget()
            self._files.retry()
            self._written.pop(self._layout.cluster_status, None)
            self._write_cluster_status()
            await asyncio.sleep(_HEARTBEAT_S)

    async def _read_limits(self) -> None:
        """Read the limits of this machine periodically; the next heartbeat has the result."""
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
    """Return the limits of this machine, with their use by the processes in the folder's records."""
    records = ((path.stem, read_record(path)) for path in layout.run.glob("*.json"))
    alive = {name: record.pid for name, record in records if record is not None and is_alive(record)}
    parts = {name: pid for name, pid in alive.items() if pid is not None}
    return tightest(readings.read({AGENT: os.getpid(), **parts}))


def _sandbox(limited: str) -> Component:
    """Find the sandbox support of this machine, and log what it lacks; `limited` says how it limits memory."""
    ready, message = ability.described()
    log.log(logging.INFO if message == ability.WHOLE else logging.WARNING, "%s; %s", message, limited)
    return Component("sandbox", ready=ready, message=f"{message}; {limited}")
