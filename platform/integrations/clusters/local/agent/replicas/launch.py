"""Launch of a replica: the command, the variables and the sandbox of its process."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.errors import Unavailable
from integrations.clusters.base import DesiredRevision, may_connect
from integrations.clusters.flags import CLOSED, allows_python, logger_flags, trace_variables
from integrations.clusters.local.agent.processes import Program
from integrations.clusters.local.agent.replicas.model_source import ModelSource
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
from integrations.clusters.local.agent.replicas.relay import Outgoing, Relay
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.confinement import REPLICA_LIMITS, confined, network_of, private
from integrations.clusters.local.documents import revision_to_json
from integrations.clusters.local.files import BadFileError, secret_env_of, secret_values
from integrations.clusters.local.payloads import RevisionTap
from integrations.clusters.local.runtime import environment
from integrations.sandbox.policy import Sandbox
from serving_runtime.shared import otlp

Secrets = Mapping[str, Mapping[str, str]]
"""Variables whose values are in secrets, of each part of a replica: the predictor and its companions."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a replica is started.

    Attributes:
        outgoing: the connections that its runtime opens.
        relay: by which it opens them; None without one.
        secrets: what `read_secrets` returned.
    """

    workshop: Workshop
    namespace: str
    revision: DesiredRevision
    index: int
    source: ModelSource
    tap: RevisionTap
    outgoing: Outgoing
    relay: Relay | None = None
    secrets: Secrets = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return its name, unique among all of the agent's."""
        return f"{self.namespace}.{self.revision.name}-{self.index}"

    @property
    def private(self) -> Path:
        """Return its own folder."""
        return self.workshop.layout.private / self.name

    @property
    def ports_file(self) -> Path:
        """Return the file in which its process says that it listens."""
        return self.private / "ports"

    def variables(self) -> dict[str, str]:
        """Return the process's own variables; messages about it show names instead of their values."""
        found = {"FAIRLEAD_HOME": str(self.workshop.layout.home)}
        for part, its in by_part(self.revision).items():
            own = {**its.env, **self.secrets.get(part, {})}
            found |= own if part == PREDICTOR else {f"{part}.{name}": value for name, value in own.items()}
        return found

    def read_secrets(self) -> Secrets:
        """Return the variables of each part whose values are in secrets; raises Unavailable where one is missing."""
        revision = self.revision
        if not revision.secret_refs:
            return {}
        try:
            values = secret_values(self.workshop.layout, self.namespace, revision.model_name)
        except BadFileError as error:
            raise Unavailable(f"the values of its secrets cannot be read: {error}") from error
        found = {}
        for part, its in by_part(revision).items():
            found[part] = secret_env_of(its, values)
            for name, each in its.secret_env.items():
                if name not in found[part]:
                    where = f"secret {each.name}, which namespace {self.namespace} does not have"
                    way = f"`fairlead secrets set {each.name} --namespace {self.namespace} --key {each.key}`"
                    raise Unavailable(f"{name} is key {each.key} of {where}; set it by {way}")
        return found

    def check_programs(self) -> None:
        """Raise InvalidInput where one of its programs may not be run here, or has changed; reads all their files."""
        workshop = self.workshop
        check_programs(
            self.revision,
            workshop.program_folders,
            home=workshop.layout.home,
            on_sockets=workshop.on_sockets,
            own_network=workshop.own_networks,
        )

    def program(self, listeners: Sequence[str], left_open: Sequence[int] = ()) -> Program:
        """Return the process to start; writes the file of its programs.

        Args:
            listeners: the flags of its addresses.
            left_open: bound sockets that it inherits.
        """
        layout, revision = self.workshop.layout, self.revision
        is_code = revision.is_code and allows_python(self.workshop.runtime)
        runtime_env = {**self._environment(PREDICTOR, is_code=is_code), **self._trace_variables()}
        listening = [*listeners, f"--port-file={self.ports_file}"]
        if revision.programs:
            command, env = self._proxy(runtime_env, listening), self._own_environment(environment({}, is_code=False))
        else:
            command, env = self._runtime(listeners, f"--port-file={self.ports_file}"), runtime_env
        return Program(
            command=command,
            env=env,
            log=layout.logs / f"{self.name}.log",
            record=layout.run / f"{self.name}.json",
            sandbox=self._sandbox(is_code=is_code),
            limits=REPLICA_LIMITS,
            folder=self.private,
            left_open=left_open,
            about=self._about(),
            group=self.workshop.memory.group(self.name, resources_of(revision).memory_bytes),
        )

    def _runtime(self, listeners: Sequence[str], *more: str) -> list[str]:
        """Return the command of the runtime."""
        most = self.revision.max_concurrent_requests
        limits = [f"--max-concurrent-requests={most}"] if most else []
        if self.revision.pool_memory_bytes:
            limits.append(f"--model-memory-budget-bytes={self.revision.pool_memory_bytes}")
        return [
            *self.workshop.runtime,
            *self.source.flags,
            *listeners,
            *limits,
            *self.tap.flags(self.index),
            *(self.relay.flags if self.relay else ()),
            *logger_flags(self.namespace, self.revision, self.workshop.egress_allowed),
            *more,
            self._exit_timeout,
        ]

    def _proxy(self, runtime_env: Mapping[str, str], listening: Sequence[str]) -> list[str]:
        """Write the file of the programs, and return the command of the proxy that starts them."""
        revision, file = self.revision, self.private / "programs.json"
        # A program is code, as a container's image is.
        env = {part: self._environment(part, is_code=True) for part in by_part(revision)}
        if revision.custom is None:
            env[PREDICTOR] = dict(runtime_env)
        write_entries(file, entries(revision, env, self._runtime([]), self.private))
        return [*proxy_command(self.workshop.runtime, revision, file), *listening, self._exit_timeout]

    @property
    def _exit_timeout(self) -> str:
        return f"--exit-timeout-secs={max(1, round(self.workshop.timing.exit_s - 2))}"

    def _environment(self, part: str, *, is_code: bool) -> dict[str, str]:
        """Return the environment of the predictor or of a companion, without variables that are set where it starts."""
        own = {**by_part(self.revision)[part].env, **self.secrets.get(part, {})}
        return self._own_environment({**environment(own, is_code=is_code), **CLOSED})

    def _own_environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return {**env, "FAIRLEAD_HOME": str(self.workshop.layout.home), **private(self.private)}

    def _trace_variables(self) -> dict[str, str]:
        return trace_variables(os.environ.get(otlp.VARIABLE, ""), self.namespace, self.revision)

    def _about(self) -> dict[str, Any]:
        """Return the note for the next agent: `replica.EarlierReplica`."""
        return {
            "namespace": self.namespace,
            "index": self.index,
            "revision": revision_to_json(self.revision),
            "on_sockets": self.workshop.on_sockets,
            "relayed": self.relay is not None,
        }

    def _sandbox(self, *, is_code: bool) -> Sandbox:
        """Return the sandbox of its process."""
        runtime = self.workshop.runtime
        connects = may_connect(self.revision.egress, is_code=is_code)
        on_sockets, posts = self.workshop.on_sockets, self.outgoing.direct
        folders = program_folders(self.revision)
        network = network_of(connects=connects, posts=posts, on_sockets=on_sockets, calls_itself=bool(folders))
        relay = [self.relay.folder] if self.relay else []
        return confined(
            runtime,
            read=[*self.source.folders, self.tap.switches, *relay, *folders],
            write=[self.private, self.tap.folder(self.index)],
            network=network,
        )
