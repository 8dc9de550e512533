"""Process adoption: Envoy, replicas and relays that an earlier agent left with the holder, running or ended.

The next agent goes on with each by its note, and removes only files that belong to none of them. Programs without a
note that this release can read are ended.
"""

import logging
import shutil
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from integrations.clusters.base import DesiredRevision, Observed, ReplicaPhase
from integrations.clusters.local.agent.gateway import envoy_process as gateway
from integrations.clusters.local.agent.pools.fetcher import SUFFIX as FETCHER
from integrations.clusters.local.agent.processes import Note, Process
from integrations.clusters.local.agent.replicas.relay import SUFFIX, EarlierRelay
from integrations.clusters.local.agent.replicas.replica import EarlierReplica
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.agent.sockets import folder_of, replicas_folder
from integrations.clusters.local.documents import observed_from_json, order_from_json, revision_from_json
from integrations.clusters.local.files import (
    DESIRED_SCHEMA,
    OBSERVED_SCHEMA,
    BadFileError,
    Layout,
    key_of,
    read_json,
)
from integrations.clusters.local.holder.client import Held, Holder
from integrations.clusters.local.state_files import StateFiles

log = logging.getLogger(__name__)

Key = tuple[str, str]  # namespace and service


@dataclass(frozen=True, slots=True)
class Left:
    """One program with its note; `revision` and `namespace` are a replica's."""

    held: Held
    note: Note
    namespace: str = ""
    revision: DesiredRevision | None = None

    @classmethod
    def read(cls, held: Held) -> "Left":
        """Parse it from its note; raises what a note of another release raises."""
        note = Note.read(held)
        if "revision" not in note.about:
            return cls(held, note)
        return cls(held, note, str(note.about["namespace"]), revision_from_json(note.about["revision"]))


@dataclass(frozen=True, slots=True)
class Earlier:
    """Programs of an earlier agent, by name."""

    programs: Mapping[str, Left] = field(default_factory=dict)

    @classmethod
    def of(cls, holder: Holder) -> "Earlier":
        """Return the holder's programs, after ending those that cannot be adopted."""
        found: dict[str, Left] = {}
        for held in holder.programs():
            try:
                found[held.name] = Left.read(held)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                log.warning("%s of an earlier agent is ended: %r", held.name, error)
                holder.end(held)
        for name in [name for name in found if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) not in found]:
            holder.end(found.pop(name).held)
        for name in [name for name in found if name.endswith(FETCHER)]:  # models in memory go on without it
            holder.end(found.pop(name).held)
        return cls(found)

    @property
    def groups(self) -> set[str]:
        """Return the folders of the cgroups with running programs."""
        return {left.note.group[0] for left in self._running().values() if left.note.group is not None}

    @property
    def services(self) -> set[Key]:
        """Return the services with replicas."""
        return {(left.namespace, left.revision.model_name) for left in self._replicas().values() if left.revision}

    @property
    def gateway_runs(self) -> bool:
        return gateway.NAME in self._running()

    def port(self, host: str, port: int) -> int | None:
        """Return the port of an earlier gateway at this address; 0 is any."""
        left = self.programs.get(gateway.NAME)
        its = left.note.about if left is not None else {}
        return int(its["port"]) if its.get("host") == host and port in (0, its["port"]) else None

    @property
    def gateway_holds(self) -> bool:
        """Return whether the earlier gateway holds requests for services that are asleep; an older release's fails."""
        left = self.programs.get(gateway.NAME)
        return left is None or bool(left.note.about.get(gateway.HOLDS))

    def gateway(self, holder: Holder, files: StateFiles) -> Process | None:
        """Take up the gateway."""
        left = self.programs.get(gateway.NAME)
        return None if left is None else Process.adopted(holder, left.held, files)

    def replicas(self, workshop: Workshop) -> dict[Key, list[EarlierReplica]]:
        """Take up the replicas, by their services."""
        found: dict[Key, list[EarlierReplica]] = defaultdict(list)
        for name, left in self._replicas().items():
            assert left.revision is not None  # noqa: S101 - it is a replica
            key = left.namespace, left.revision.model_name
            was = self.observed(workshop.layout, key)
            about, groups = left.note.about, workshop.memory.groups
            group = groups.adopted(*left.note.group) if groups and left.note.group else None
            relay = self.programs.get(f"{name}{SUFFIX}")
            found[key].append(
                EarlierReplica(
                    left.namespace,
                    int(about["index"]),
                    left.revision,
                    Process.adopted(workshop.holder, left.held, workshop.files, group),
                    on_sockets=bool(about["on_sockets"]),
                    relay=EarlierRelay(Process.adopted(workshop.holder, relay.held, workshop.files) if relay else None)
                    if about["relayed"]
                    else None,
                    was_ready=name in _ready(left.namespace, was),
                )
            )
        return found

    def observed(self, layout: Layout, key: Key) -> Observed | None:
        """Return the earlier agent's last status of a service; None where it cannot be read."""
        with suppress(OSError, BadFileError, LookupError, TypeError, ValueError):
            return observed_from_json(read_json(layout.status_file(*key), OBSERVED_SCHEMA))
        return None

    def pooled(self, layout: Layout) -> dict[Key, Observed]:
        """Return the earlier agent's last status of each service that a running pool answers for."""
        pools = {"/".join(key) for key in self.services}
        found: dict[Key, Observed] = {}
        for path in layout.desired.glob("*.json") if pools else ():
            with suppress(OSError, BadFileError):
                order = order_from_json(read_json(path, DESIRED_SCHEMA))
                if pools & {revision.pool for revision in order.desired.revisions}:
                    was = self.observed(layout, key_of(path))
                    found |= {} if was is None else {key_of(path): was}
        return found

    def clean(self, layout: Layout, pooled: Collection[Key] = ()) -> None:
        """Remove the files that belong to no held program, nor to one of the services in pools."""
        names = list(self._replicas())
        sockets = {folder_of(layout, each).name for name in names for each in (name, f"{name}/relay")}
        # Replicas of a pool see its folder, in which the next fetcher listens again.
        sockets |= {folder_of(layout, f"{'.'.join(key)}{FETCHER}").name for key in self.services}
        kept: dict[Path, set[str]] = {
            layout.status: {layout.status_file(*key).name for key in (*self.services, *pooled)},
            layout.payloads: {layout.payloads_of(*key).name for key in self.services},
            layout.private: set(names),
            replicas_folder(layout): sockets,
        }
        for folder, spared in kept.items():
            for path in folder.glob("*"):
                if path.name not in spared:
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if not self.gateway_runs:
            gateway.fresh_folder(layout)

    def _replicas(self) -> dict[str, Left]:
        return {name: left for name, left in self.programs.items() if left.revision is not None}

    def _running(self) -> dict[str, Left]:
        return {name: left for name, left in self.programs.items() if left.held.status is None}


def _ready(namespace: str, was: Observed | None) -> set[str]:
    """Return the full names of the replicas that were ready."""
    replicas = [replica for revision in (was.revisions if was else ()) for replica in revision.replicas]
    return {f"{namespace}.{replica.name}" for replica in replicas if replica.phase is ReplicaPhase.READY}
