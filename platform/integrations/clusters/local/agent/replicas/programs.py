"""Programs of a replica: what is checked before they start, and the file that its proxy starts them from.

A replica with programs is one process for the agent, `fairlead-serve proxy`. In the replica's sandbox it starts
transformer, explainer and predictor as its children, the runtime too where the predictor is a model, and forwards to
them.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from common.errors import InvalidInput
from integrations.artifacts.programs import check_unchanged
from integrations.clusters.base import DesiredCompanion, DesiredRevision, Resources

PREDICTOR = "predictor"
Number = TypeVar("Number", int, float)


def check_programs(
    revision: DesiredRevision, allowed: Sequence[Path], *, home: Path, on_sockets: bool, own_network: bool
) -> None:
    """Raise InvalidInput where a program may not be run here, or is no longer what was applied; reads all files.

    Args:
        allowed: folders of which each folder is a program.
        home: the platform's own folder.
        on_sockets: the runtime takes bound sockets.
        own_network: this machine gives sandboxes a network of their own, or models are trusted.
    """
    if not on_sockets:
        raise InvalidInput("its programs need a runtime that takes bound sockets; start the platform with such a one")
    if not own_network and not revision.egress:
        raise InvalidInput(
            "this machine gives programs no network of their own, so that these could open any connection; grant the "
            "service `egress: true`, or let the platform's user create namespaces"
        )
    for part, (working_dir, record) in revision.programs.items():
        named = {"revision": revision.name, "field": f"{part}.workingDir"}
        check_unchanged(working_dir, record, allowed, home=home, **named)


def program_folders(revision: DesiredRevision) -> list[Path]:
    """Return the folders that its programs read."""
    return [Path(working_dir) for working_dir, _ in revision.programs.values()]


def resources_of(revision: DesiredRevision) -> Resources:
    """Return what one replica requests, with its programs."""
    its = revision.resources
    for each in revision.companions.values():
        cpu_cores = _sum(its.cpu_cores, each.resources.cpu_cores)
        its = replace(its, cpu_cores=cpu_cores, memory_bytes=_sum(its.memory_bytes, each.resources.memory_bytes))
    return its


def _sum(one: Number | None, other: Number | None) -> Number | None:
    """Return the sum of two requests; None where neither is made."""
    return other if one is None else one if other is None else one + other


def entries(
    revision: DesiredRevision, env: Mapping[str, Mapping[str, str]], runtime: Sequence[str], private: Path
) -> dict[str, dict[str, Any]]:
    """Return the proxy's file as JSON.

    Args:
        env: the environment of each part.
        runtime: the command of the runtime, which is the predictor of a model.
        private: its working directory.
    """
    named = {"MODEL_NAME": revision.model_name, "FAIRLEAD_REVISION": revision.name}

    def entry(part: str, command: Sequence[str], args: Sequence[str], folder: str) -> dict[str, Any]:
        return {"command": [*command, *args], "folder": folder, "env": {**env[part], **named}}

    if revision.custom is None:
        runtime_env = dict(env[PREDICTOR])
        predictor = {"command": list(runtime), "folder": str(private), "env": runtime_env, "runtime": True}
    else:
        its = revision.custom
        predictor = entry(PREDICTOR, its.command, its.args, its.working_dir)
    companions = {
        str(kind): entry(str(kind), each.command, each.args, each.working_dir)
        for kind, each in revision.companions.items()
    }
    return {PREDICTOR: predictor, **companions}


def write_entries(path: Path, said: Mapping[str, Any]) -> None:
    """Write the file for its owner alone; the proxy removes it once read."""
    with open(path, "x", opener=_private) as file:
        json.dump(said, file)


def proxy_command(runtime: Sequence[str], revision: DesiredRevision, file: Path) -> list[str]:
    """Return the command of the proxy, without its addresses.

    Args:
        runtime: the command of the runtime, with flags.
    """
    custom = revision.custom
    most = revision.max_concurrent_requests
    # Of a model its runtime limits them.
    limits = [f"--max-concurrent-requests={most}"] if most and custom is not None else []
    health = [f"--health_path={custom.ready_path}"] if custom is not None and custom.ready_path else []
    return [
        *takewhile(lambda word: not word.startswith("--"), runtime),
        "proxy",
        f"--programs={file}",
        f"--model_name={revision.model_name}",
        f"--protocol={'v2' if custom is None else custom.protocol}",
        *health,
        *limits,
    ]


def by_part(revision: DesiredRevision) -> dict[str, DesiredRevision | DesiredCompanion]:
    """Return what has the variables of each part."""
    return {PREDICTOR: revision, **{str(kind): its for kind, its in revision.companions.items()}}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
