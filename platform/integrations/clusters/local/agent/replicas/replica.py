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
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.errors import FairleadError, InvalidInput, Unavailable
from integrations.clusters.base import (
    DesiredRevision,
    Failure,
    FailureReason,
    ObservedReplica,
    ReplicaPhase,
    hidden,
    last_lines,
    may_connect,
    printable,
    reason_of_exit,
)
from integrations.clusters.flags import CLOSED, allows_python, logger_flags, trace_variables
from integrations.clusters.local.agent.polling import until
from integrations.clusters.local.agent.processes import Process, Program
from integrations.clusters.local.agent.replicas.addresses import FREE_PORTS, Addresses, written
from integrations.clusters.local.agent.replicas.capacity_check import lack, machine
from integrations.clusters.local.agent.replicas.health_probe import HealthProbe
from integrations.clusters.local.agent.replicas.memory_watchdog import Tenant
from integrations.clusters.local.agent.replicas.programs import (
    PREDICTOR,
    by_part,
    check_programs,
    entries,
    program_folders,
    proxy_command,
    resources_of,
    write_entries,
)
from integrations.clusters.local.agent.replicas.relay import EarlierRelay, Relay, Site, outgoing
from integrations.clusters.local.agent.replicas.replica_memory import ReplicaMemory
from integrations.clusters.local.agent.replicas.start_limit import Starts, Turn, most_at_once
from integrations.clusters.local.agent.sockets import ReplicaSockets
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.confinement import REPLICA_LIMITS, confined, network_of, private
from integrations.clusters.local.documents import revision_to_json
from integrations.clusters.local.envoy.values import Endpoint
from integrations.clusters.local.files import BadFileError, Layout, secret_env_of, secret_values
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.model_repository import Repository
from integrations.clusters.local.payloads import RevisionTap
from integrations.clusters.local.runtime import RUNTIME, environment
from integrations.clusters.local.state_files import StateFiles
from integrations.sandbox.policy import Sandbox
from serving_runtime.shared import otlp
from serving_runtime.shared.egress import Network

log = logging.getLogger(__name__)

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Workshop:
    """Dependencies shared by all replicas.

    Attributes:
        runtime: the program and its first arguments.
        changed: called after each change of a replica's state.
        holder: starts their processes.
        files: has their records.
        egress_allowed: networks that payload loggers may be in although they are not public.
        on_sockets: the runtime takes bound Unix sockets; else it takes ports of 127.0.0.1.
        relays: runtimes reach loggers and collectors through relays; else by themselves.
        memory: their memory limits.
        starts: the limit of concurrent starts.
        own_networks: sandboxes have networks of their own, or models are trusted.
        program_folders: each folder in one of them is a program that replicas may run; empty runs none.
    """

    layout: Layout
    timing: Timing
    changed: Callable[[], None]
    holder: Holder
    files: StateFiles
    runtime: Sequence[str] = RUNTIME
    egress_allowed: Sequence[Network] = ()
    on_sockets: bool = False
    relays: bool = False
    memory: ReplicaMemory = field(default_factory=ReplicaMemory)
    starts: Starts = field(default_factory=lambda: Starts(most_at_once()))
    own_networks: bool = True
    program_folders: Sequence[Path] = ()


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
        repository: Repository,
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
        self._workshop = workshop
        self._revision = revision
        self._repository = repository
        self._tap = tap
        self._namespace = namespace
        self._full_name = f"{namespace}.{self.name}"
        self._private = workshop.layout.private / self._full_name
        self._ports_file = self._private / "ports"
        self._phase = ReplicaPhase.STARTING
        self._message = "the runtime is being started"
        self._last_ending = ""
        self._failure: Failure | None = None
        self._restarts = 0
        self._failures = 0
        self._has_served = False
        self._metrics_url = ""
        self._process: Process | None = None
        self._sockets: ReplicaSockets | None = None
        self._outgoing = outgoing(revision.logger, workshop.runtime, workshop.egress_allowed, relays=workshop.relays)
        self._relay: Relay | None = None
        self._left_at = self._busy_at = 0.0
        self._is_ending = False
        self._secret_env: dict[str, dict[str, str]] = {}
        self._earlier = earlier
        self._served_at: Addresses | None = None
        self._looked = asyncio.Event()
        if earlier is not None:
            self._take_up(earlier)
        self._life = asyncio.create_task(self._run(), name=self._full_name)

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
            message=hidden(self._message, self._env()),
            restart_number=self.restart_number,
            failure=self._failure,
        )

    def tenant(self) -> Tenant | None:
        """Return its entry for the memory watchdog; None while no process runs."""
        if self._process is None or not self._process.running:
            return None
        requested_bytes = resources_of(self._revision).memory_bytes
        return Tenant(self._full_name, self._process, requested_bytes, self._process.program.group)

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
                    log.exception("replica %s", self._full_name)
                    what = f"failed in the agent itself ({type(error).__name__}: {error})"
                    ending = self._failed(FailureReason.RUNTIME_UNHEALTHY, what)
                self._failures += 1
                wait_s = self._workshop.timing.backoff_s(self._failures)
                self._note(ReplicaPhase.BACKING_OFF, f"it {ending}; it is started again after {wait_s:g} s")
                log.warning("replica %s %s; waiting %g s", self._full_name, ending, wait_s)
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
            self._secret_env = self._read_secrets()  # for messages; its process has them
        if earlier.on_sockets:
            self._sockets = ReplicaSockets(layout, self._full_name, adopted=True)
        if earlier.relay is not None:
            self._relay = Relay(self._site, self._full_name, self._outgoing.relayed, earlier.relay)
        if earlier.was_ready and earlier.process.running:
            # It serves, and one that is slow to answer now must not lose its requests.
            with suppress(ValueError, KeyError, TypeError):
                self._served_at = written(self._ports_file, self._sockets)
        if self._served_at is not None:
            self.endpoint, self._metrics_url = self._served_at.endpoint, self._served_at.metrics_url
            self._has_served = True
            self._phase, self._message = ReplicaPhase.READY, ""

    async def _live(self) -> str:
        """Run one process from start to end, or that of an earlier agent to its end; returns how it ended."""
        if self._earlier is not None:
            process, self._earlier = self._earlier.process, None
            return await self._watched(process, "")
        if why := lack(resources_of(self._revision), machine()):
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
            if self._revision.custom is None:
                await self._repository.prepare()
            if self._revision.programs:
                await asyncio.to_thread(self._check_programs)
            _empty(self._private)
            if self._relay is None and self._outgoing.relayed:
                self._relay = Relay(self._site, self._full_name, self._outgoing.relayed)
            self._secret_env = self._read_secrets()
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
            self.endpoint, self._metrics_url = None, ""
        reason = FailureReason.RUNTIME_UNHEALTHY if served else reason_of_exit(process.exit_code)
        if process.ended_for_memory:
            reason = FailureReason.OUT_OF_MEMORY
        return self._failed(reason, self._last_ending, process)

    def _check_programs(self) -> None:
        workshop = self._workshop
        check_programs(
            self._revision,
            workshop.program_folders,
            home=workshop.layout.home,
            on_sockets=workshop.on_sockets,
            own_network=workshop.own_networks,
        )

    def _started(self, restarts: int, before: str) -> Process:
        if not self._workshop.on_sockets:
            return self._process_of(self._program(FREE_PORTS), restarts, before)
        self._sockets = ReplicaSockets(self._workshop.layout, self._full_name)
        try:
            program = self._program(self._sockets.flags, self._sockets.numbers)
            return self._process_of(program, restarts, before)
        finally:
            self._sockets.close()

    def _process_of(self, program: Program, restarts: int, before: str) -> Process:
        return Process(self._workshop.holder, program, self._workshop.files, restarts=restarts, message=before)

    def _failed(
        self, reason: FailureReason, ending: str, process: Process | None = None, *, is_final: bool = False
    ) -> str:
        """Record the ending, a part of a sentence, as the last failure; returns it."""
        env = self._env()
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
        self.endpoint, self._metrics_url = found.endpoint, found.metrics_url
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
        found = written(self._ports_file, self._sockets)
        if found is not None:
            with closing(self._probe(found)) as probe:
                if await probe.is_ready():
                    return found
        self._looked.set()
        return None

    def _probe(self, at: Addresses) -> HealthProbe:
        return HealthProbe(at.endpoint.http, timeout_s=self._workshop.timing.probe_timeout_s)

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
        self.endpoint, self._metrics_url = None, ""
        shutil.rmtree(self._private, ignore_errors=True)
        if self._sockets is not None:
            self._sockets.remove()
        self._workshop.changed()

    def _env(self) -> dict[str, str]:
        """Return the process's own variables; messages about it show names instead of their values."""
        found = {"FAIRLEAD_HOME": str(self._workshop.layout.home)}
        for part, its in by_part(self._revision).items():
            own = {**its.env, **self._secret_env.get(part, {})}
            found |= own if part == PREDICTOR else {f"{part}.{name}": value for name, value in own.items()}
        return found

    def _read_secrets(self) -> dict[str, dict[str, str]]:
        """Return the variables of each part whose values are in secrets; raises Unavailable where one is missing."""
        revision = self._revision
        if not revision.secret_refs:
            return {}
        try:
            values = secret_values(self._workshop.layout, self._namespace, revision.model_name)
        except BadFileError as error:
            raise Unavailable(f"the values of its secrets cannot be read: {error}") from error
        found = {}
        for part, its in by_part(revision).items():
            found[part] = secret_env_of(its, values)
            for name, each in its.secret_env.items():
                if name not in found[part]:
                    where = f"secret {each.name}, which namespace {self._namespace} does not have"
                    way = f"`fairlead secrets set {each.name} --namespace {self._namespace} --key {each.key}`"
                    raise Unavailable(f"{name} is key {each.key} of {where}; set it by {way}")
        return found

    def _program(self, listeners: Sequence[str], left_open: Sequence[int] = ()) -> Program:
        layout, revision = self._workshop.layout, self._revision
        is_code = revision.is_code and allows_python(self._workshop.runtime)
        runtime_env = {**self._environment(PREDICTOR, is_code=is_code), **self._trace_variables()}
        listening = [*listeners, f"--port-file={self._ports_file}"]
        if revision.programs:
            command, env = self._proxy(runtime_env, listening), self._own_environment(environment({}, is_code=False))
        else:
            command, env = self._runtime(listeners, f"--port-file={self._ports_file}"), runtime_env
        return Program(
            command=command,
            env=env,
            log=layout.logs / f"{self._full_name}.log",
            record=layout.run / f"{self._full_name}.json",
            sandbox=self._sandbox(is_code=is_code),
            limits=REPLICA_LIMITS,
            folder=self._private,
            left_open=left_open,
            about=self._about(),
            group=self._workshop.memory.group(self._full_name, resources_of(revision).memory_bytes),
        )

    def _runtime(self, listeners: Sequence[str], *more: str) -> list[str]:
        """Return the command of the runtime."""
        most = self._revision.max_concurrent_requests
        limits = [f"--max-concurrent-requests={most}"] if most else []
        return [
            *self._workshop.runtime,
            f"--model-repository={self._repository.folder}",
            *listeners,
            *limits,
            *self._tap.flags(self.index),
            *(self._relay.flags if self._relay else ()),
            *logger_flags(self._namespace, self._revision, self._workshop.egress_allowed),
            *more,
            self._exit_timeout,
        ]

    def _proxy(self, runtime_env: Mapping[str, str], listening: Sequence[str]) -> list[str]:
        """Write the file of the programs, and return the command of the proxy that starts them."""
        revision, file = self._revision, self._private / "programs.json"
        # A program is code, as a container's image is.
        env = {part: self._environment(part, is_code=True) for part in by_part(revision)}
        if revision.custom is None:
            env[PREDICTOR] = dict(runtime_env)
        write_entries(file, entries(revision, env, self._runtime([]), self._private))
        return [*proxy_command(self._workshop.runtime, revision, file), *listening, self._exit_timeout]

    @property
    def _exit_timeout(self) -> str:
        return f"--exit-timeout-secs={max(1, round(self._workshop.timing.exit_s - 2))}"

    def _environment(self, part: str, *, is_code: bool) -> dict[str, str]:
        """Return the environment of the predictor or of a companion, without variables that are set where it starts."""
        own = {**by_part(self._revision)[part].env, **self._secret_env.get(part, {})}
        return self._own_environment({**environment(own, is_code=is_code), **CLOSED})

    def _own_environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return {**env, "FAIRLEAD_HOME": str(self._workshop.layout.home), **private(self._private)}

    def _trace_variables(self) -> dict[str, str]:
        return trace_variables(os.environ.get(otlp.VARIABLE, ""), self._namespace, self._revision)

    def _about(self) -> dict[str, Any]:
        """Return the note for the next agent: `EarlierReplica`."""
        return {
            "namespace": self._namespace,
            "index": self.index,
            "revision": revision_to_json(self._revision),
            "on_sockets": self._sockets is not None,
            "relayed": self._relay is not None,
        }

    @property
    def _site(self) -> Site:
        return Site(self._workshop.layout, self._workshop.timing, self._workshop.holder, self._workshop.files)

    def _sandbox(self, *, is_code: bool) -> Sandbox:
        """Return the sandbox of its process."""
        runtime = self._workshop.runtime
        connects = may_connect(self._revision.egress, is_code=is_code)
        on_sockets, posts = self._workshop.on_sockets, self._outgoing.direct
        folders = program_folders(self._revision)
        network = network_of(connects=connects, posts=posts, on_sockets=on_sockets, calls_itself=bool(folders))
        relay = [self._relay.folder] if self._relay else []
        return confined(
            runtime,
            read=[self._repository.folder, self._tap.switches, *relay, *folders],
            write=[self._private, self._tap.folder(self.index)],
            network=network,
        )


def _empty(folder: Path) -> None:
    """Make an empty folder for its owner alone, replacing what an earlier process left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
