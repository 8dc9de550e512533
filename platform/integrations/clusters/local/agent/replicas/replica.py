"""Replica life cycle: a runtime process that is kept running until it has to leave.

                 answers ready                    stops answering, or says not ready
    Starting ------------------> Ready ---------------------------------------------> Starting
       |  ^                        |  ends or is killed for not answering
       |  '--- waited --- BackingOff <-- ends, cannot start, or takes too long (from Starting too)
       '--------- leave() ---------'-----> Draining ---- end() ----> gone

`endpoint` is where the gateway may send requests; it is kept while draining, until `end` is called once nothing is in
flight any more.
"""

import asyncio
import logging
import shutil
import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import FairleadError, InvalidInput, Unavailable
from integrations.clusters.base import (
    DesiredRevision,
    Failure,
    FailureReason,
    ObservedReplica,
    ReplicaPhase,
    hidden,
    last_lines,
    printable,
    reason_of_exit,
)
from integrations.clusters.local.agent.polling import until
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.agent.replicas.addresses import FREE_PORTS, Addresses, written
from integrations.clusters.local.agent.replicas.capacity_check import lack, machine
from integrations.clusters.local.agent.replicas.health_probe import HealthProbe
from integrations.clusters.local.agent.replicas.launch import Launch
from integrations.clusters.local.agent.replicas.memory_watchdog import Tenant
from integrations.clusters.local.agent.replicas.model_source import ModelSource
from integrations.clusters.local.agent.replicas.programs import (
    resources_of,
)
from integrations.clusters.local.agent.replicas.relay import EarlierRelay, Relay, Site, outgoing
from integrations.clusters.local.agent.replicas.start_limit import Turn
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.agent.sockets import ReplicaSockets
from integrations.clusters.local.envoy.values import Endpoint, Place
from integrations.clusters.local.payloads import RevisionTap

log = logging.getLogger(__name__)

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class EarlierReplica:
    """A replica that an earlier agent had started.

    Attributes:
        process: running, or ended meanwhile.
        relay: None without one.
        was_ready: by that agent's last status.
    """

    namespace: str
    index: int
    revision: DesiredRevision
    process: Process
    on_sockets: bool
    relay: EarlierRelay | None
    was_ready: bool


class Replica:
    """Replica number `index` of a revision. `run` is its life cycle; all else may be called at any time."""

    def __init__(
        self,
        workshop: Workshop,
        namespace: str,
        revision: DesiredRevision,
        index: int,
        source: ModelSource,
        *,
        tap: RevisionTap,
        earlier: EarlierReplica | None = None,
    ) -> None:
        """Begin its life cycle, or continue that of an earlier agent's replica."""
        self.name = f"{revision.name}-{index}"
        self.index = index
        self.restart_number = revision.restart_number
        self.leaving = False
        self.endpoint: Endpoint | None = None
        self.admin: Place | None = None
        self._workshop = workshop
        relayed = outgoing(revision.logger, workshop.runtime, workshop.egress_allowed, relays=workshop.relays)
        self._launch = Launch(workshop, namespace, revision, index, source, tap, relayed)
        self._phase = ReplicaPhase.STARTING
        self._message = "the runtime is being started"
        self._last_ending = ""
        self._failure: Failure | None = None
        self._restarts = 0
        self._failures = 0
        self._has_served = False
        self._metrics_url = ""
        self._start_s: float | None = None
        self._process: Process | None = None
        self._sockets: ReplicaSockets | None = None
        self._relay: Relay | None = None
        self._left_at = self._busy_at = 0.0
        self._is_ending = False
        self._earlier = earlier
        self._served_at: Addresses | None = None
        self._looked = asyncio.Event()
        if earlier is not None:
            self._take_up(earlier)
        self._life = asyncio.create_task(self._run(), name=self._launch.name)

    @property
    def ended(self) -> bool:
        """Return whether it is over: it had to leave and no process of it runs."""
        return self._life.done()

    @property
    def ready(self) -> bool:
        """Return whether it may be given new requests."""
        return self._phase is ReplicaPhase.READY and not self.leaving

    async def looked(self) -> None:
        """Return once its readiness is known, or its process has ended; for one of an earlier agent."""
        await self._looked.wait()

    def observed(self) -> ObservedReplica:
        """Return its observed state."""
        running = self._process is not None and self._process.running
        return ObservedReplica(
            name=self.name,
            phase=ReplicaPhase.DRAINING if self.leaving else self._phase,
            restarts=self._restarts,
            started_at=self._process.started_at if self._process is not None and running else None,
            metrics_url=self._metrics_url,
            message=hidden(self._message, self._launch.variables()),
            restart_number=self.restart_number,
            failure=self._failure,
            start_s=self._start_s if running else None,
        )

    def tenant(self) -> Tenant | None:
        """Return its entry for the memory watchdog; None while no process runs."""
        if self._process is None or not self._process.running:
            return None
        requested_bytes = resources_of(self._launch.revision).memory_bytes
        return Tenant(self._launch.name, self._process, requested_bytes, self._process.program.group)

    def leave(self) -> None:
        """Take no new requests; without an endpoint it ends at once."""
        self.leaving = True
        self._message = "requests in flight are being finished"
        self._left_at = self._busy_at = asyncio.get_running_loop().time()
        if self.endpoint is None:
            self._end()

    def let_go(self, *, idle: bool) -> None:
        """End it if it has been idle for long enough, or busy for too long; called while the gateway drains it."""
        now, timing = asyncio.get_running_loop().time(), self._workshop.timing
        if not idle:
            self._busy_at = now
        if now - self._busy_at >= timing.settle_s or now - self._left_at >= timing.drain_s:
            self._end()

    async def end(self) -> None:
        """Stop the process, which first finishes what it has; returns when it is gone."""
        self.leaving = True
        self._end()
        await asyncio.wait({self._life})

    def _end(self) -> None:
        if not self._is_ending:  # a second cancellation would cut the wait for the process short
            self._is_ending = True
            self._life.cancel()

    async def _run(self) -> None:
        try:
            while not self.leaving:
                try:
                    ending = await self._live()
                except Exception as error:  # a fault of ours in one replica must not take the others with it
                    log.exception("replica %s", self._launch.name)
                    what = f"failed in the agent itself ({type(error).__name__}: {error})"
                    ending = self._failed(FailureReason.RUNTIME_UNHEALTHY, what)
                self._failures += 1
                wait_s = self._workshop.timing.backoff_s(self._failures)
                self._note(ReplicaPhase.BACKING_OFF, f"it {ending}; it is started again after {wait_s:g} s")
                log.warning("replica %s %s; waiting %g s", self._launch.name, ending, wait_s)
                if not self.leaving:
                    await asyncio.sleep(wait_s)
        finally:
            self._looked.set()
            await asyncio.shield(self._close())

    def _take_up(self, earlier: EarlierReplica) -> None:
        """Take over process, sockets and relay of an earlier agent's replica, as far as they exist."""
        layout = self._workshop.layout
        self._process, self._restarts = earlier.process, earlier.process.restarts
        with suppress(Unavailable):
            # For messages; its process has them.
            self._launch = replace(self._launch, secrets=self._launch.read_secrets())
        if earlier.on_sockets:
            self._sockets = ReplicaSockets(layout, self._launch.name, adopted=True)
        if earlier.relay is not None:
            self._relay = Relay(self._site, self._launch.name, self._launch.outgoing.relayed, earlier.relay)
        if earlier.was_ready and earlier.process.running:
            # It serves, and one that is slow to answer now must not lose its requests.
            with suppress(ValueError, KeyError, TypeError):
                self._served_at = written(self._launch.ports_file, self._sockets)
        if self._served_at is not None:
            self._serve_at(self._served_at)
            self._has_served = True
            self._phase, self._message = ReplicaPhase.READY, ""

    async def _live(self) -> str:
        """Run one process from start to end, or that of an earlier agent to its end; returns how it ended."""
        if self._earlier is not None:
            process, self._earlier = self._earlier.process, None
            return await self._watched(process, "")
        if why := lack(resources_of(self._launch.revision), machine()):
            return self._failed(FailureReason.UNSCHEDULABLE, why)
        self._note(ReplicaPhase.STARTING, "it waits for others that start")
        with await self._workshop.starts.turn(is_new=not self._has_served) as turn:
            return await self._start(turn)

    async def _start(self, turn: Turn) -> str:
        """Start a process in its turn and run it to its end; returns how it ended."""
        before = f"its last process {self._last_ending}" if self._last_ending else ""
        self._note(
            ReplicaPhase.STARTING, f"it is being started again; {before}" if before else "the model is being loaded"
        )
        try:
            if self._launch.revision.custom is None:
                await self._launch.source.prepare()
            if self._launch.revision.programs:
                await asyncio.to_thread(self._launch.check_programs)
            _empty(self._launch.private)
            if self._relay is None and self._launch.outgoing.relayed:
                self._relay = Relay(self._site, self._launch.name, self._launch.outgoing.relayed)
            self._launch = replace(self._launch, relay=self._relay, secrets=self._launch.read_secrets())
            restarts = self._restarts + (self._process is not None)
            self._process = self._started(restarts, before)
            self._restarts = restarts
        except (FairleadError, OSError) as error:
            is_final = isinstance(error, InvalidInput)
            return self._failed(FailureReason.MODEL_LOAD_FAILED, f"cannot be started: {error}", is_final=is_final)
        return await self._watched(self._process, before, turn)

    async def _watched(self, process: Process, before: str, turn: Turn | None = None) -> str:
        """Watch a process until it has ended; returns how it ended. Its turn ends once it is ready."""
        try:
            self._last_ending = await process.watched(self._watch(before, turn))
            served = self.endpoint is not None
        finally:
            self._looked.set()
            self._serve_at(None)
        reason = FailureReason.RUNTIME_UNHEALTHY if served else reason_of_exit(process.exit_code)
        if process.ended_for_memory:
            reason = FailureReason.OUT_OF_MEMORY
        return self._failed(reason, self._last_ending, process)

    def _started(self, restarts: int, before: str) -> Process:
        if not self._workshop.on_sockets:
            return self._process_of(self._launch.program(FREE_PORTS), restarts, before)
        self._sockets = ReplicaSockets(self._workshop.layout, self._launch.name)
        try:
            program = self._launch.program(self._sockets.flags, self._sockets.numbers)
            return self._process_of(program, restarts, before)
        finally:
            self._sockets.close()

    def _process_of(self, program: Program, restarts: int, before: str) -> Process:
        return Process(self._workshop.holder, program, self._workshop.files, restarts=restarts, message=before)

    def _failed(
        self, reason: FailureReason, ending: str, process: Process | None = None, *, is_final: bool = False
    ) -> str:
        """Record the ending, a part of a sentence, as the last failure; returns it."""
        env = self._launch.variables()
        self._failure = Failure(
            reason=reason,
            message=printable(hidden(f"it {ending}", env)),
            at=time.time(),
            exit_code=None if process is None else process.exit_code,
            replica=self.name,
            log=() if process is None else last_lines(process.said(), env),
            is_final=is_final,
        )
        return ending

    async def _watch(self, before: str, turn: Turn | None) -> str:
        """Wait until it is ready, then probe it periodically; returns why it has to be killed."""
        timing = self._workshop.timing
        try:
            found, self._served_at = self._served_at, None
            if found is None:
                found = await until(self._serving, every_s=_POLL_S, within_s=timing.start_s)
        except TimeoutError:
            return f"was not ready within {timing.start_s:g} s and was killed"
        except (ValueError, KeyError, TypeError) as error:
            return f"wrote a port file that cannot be read ({error}) and was killed"
        if turn is not None:
            turn.end()
            if self._process is not None:
                self._start_s = round(time.time() - self._process.started_at, 3)
        self._serve_at(found)
        self._has_served = True
        self._note(ReplicaPhase.READY, before)
        self._looked.set()
        with closing(self._probe(found)) as probe:
            return await self._probed(probe, before)

    async def _probed(self, probe: HealthProbe, before: str) -> str:
        """Probe it until it no longer answers; returns the reason."""
        timing, loop = self._workshop.timing, asyncio.get_running_loop()
        served_since, wait_s, silent = loop.time(), timing.probe_s, 0
        while silent < timing.probe_failures:
            await asyncio.sleep(timing.probe_s if silent else wait_s)
            ready = await probe.is_ready()
            silent = silent + 1 if ready is None else 0
            if ready is False and self._phase is ReplicaPhase.READY:
                self._note(ReplicaPhase.STARTING, "the runtime says that it is not ready")
            elif ready and self._phase is not ReplicaPhase.READY:
                self._note(ReplicaPhase.READY, before)
            if loop.time() - served_since >= timing.backoff_reset_s:
                self._failures, wait_s = 0, timing.settled_probe_s
        return f"did not answer {silent} health checks in a row and was killed"

    async def _serving(self) -> Addresses | None:
        """Return the runtime's addresses, once it is ready."""
        found = written(self._launch.ports_file, self._sockets)
        if found is not None:
            with closing(self._probe(found)) as probe:
                if await probe.is_ready():
                    return found
        self._looked.set()
        return None

    def _probe(self, at: Addresses) -> HealthProbe:
        return HealthProbe(at.endpoint.http, timeout_s=self._workshop.timing.probe_timeout_s)

    def _serve_at(self, at: Addresses | None) -> None:
        self.endpoint = at.endpoint if at is not None else None
        self.admin = at.metrics if at is not None else None
        self._metrics_url = at.metrics_url if at is not None else ""

    def _note(self, phase: ReplicaPhase, message: str) -> None:
        self._phase = phase
        if not self.leaving:
            self._message = message
        self._workshop.changed()

    async def _close(self) -> None:
        if self._process is not None:
            await self._process.stop(self._workshop.timing.exit_s)
            self._process.forget()
        if self._relay is not None:
            await self._relay.close()
        self._serve_at(None)
        shutil.rmtree(self._launch.private, ignore_errors=True)
        if self._sockets is not None:
            self._sockets.remove()
        self._workshop.changed()

    @property
    def _site(self) -> Site:
        return Site(self._workshop.layout, self._workshop.timing, self._workshop.holder, self._workshop.files)


def _empty(folder: Path) -> None:
    """Make an empty folder for its owner alone, replacing what an earlier process left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
