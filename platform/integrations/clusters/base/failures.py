"""Replica failures: why a replica does not serve, with details. Standard library only.

Output of processes and clusters is untrusted text: it is bounded here, made printable, and stripped of values of the
environment.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

MAX_LOG_LINES = 30
MAX_LOG_BYTES = 8192
_MAX_LINE = 300
_SECRET_NAME = re.compile(r"key|token|secret|pass|pwd|credential|auth", re.IGNORECASE)
# A path below one of a machine's usual folders: at least one folder, and what lies in it.
_PATH = re.compile(
    r"(?<![\w.~/)…-])(?:file://)?/(?:home|root|tmp|var|opt|srv|usr|mnt|media|run|etc|proc|data|nix|Users|private)"
    r"(?:/[^\s/'\":;,()<>\[\]{}]+)*?/([^\s/'\":;,()<>\[\]{}]+/?)(?![^\s'\":;,()<>\[\]{}])"
)
_LEAST_HIDDEN, _LEAST_SECRET = 6, 3


class FailureReason(StrEnum):
    """Failure reasons: KServe's where it has them (`status.modelStatus.lastFailureInfo`), else Kubernetes' own.

    MODEL_LOAD_FAILED: the model's files were not there, were others, or the runtime could not load them.
    RUNTIME_UNHEALTHY: the runtime ended by itself or by a signal, or does not report that it is ready.
    OUT_OF_MEMORY: it exceeded its memory limit.
    IMAGE_PULL_FAILED, CONTAINER_NOT_STARTED, EVICTED: on Kubernetes, before or beside the runtime.
    UNSCHEDULABLE: no machine has the resources that it requests.
    NO_REPLICA_MADE: the cluster makes no replica at all, such as for a quota.
    """

    MODEL_LOAD_FAILED = "ModelLoadFailed"
    RUNTIME_UNHEALTHY = "RuntimeUnhealthy"
    OUT_OF_MEMORY = "OOMKilled"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_NOT_STARTED = "ContainerNotStarted"
    EVICTED = "Evicted"
    UNSCHEDULABLE = "Unschedulable"
    NO_REPLICA_MADE = "NoReplicaMade"


@dataclass(frozen=True, slots=True)
class ReplicaEvent:
    """An event of a replica as the cluster reports it, `count` times, at last at `at` (Unix seconds)."""

    at: float
    reason: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a replica.

    Attributes:
        message: one sentence.
        at: Unix seconds at which it failed, or began to.
        exit_code: of the process that ended, 128 + N for signal N; None where no process ended.
        container: the part that failed, such as `prepare`; empty where it has one part only.
        is_final: a retry cannot help: the model, or its service's file, has to change.
        events: oldest first; `log`: the last lines of the process that failed. Both empty where unknown.
    """

    reason: FailureReason
    message: str
    at: float
    exit_code: int | None = None
    replica: str = ""
    container: str = ""
    events: tuple[ReplicaEvent, ...] = ()
    log: tuple[str, ...] = ()
    is_final: bool = False


def failure_from_json(value: Mapping[str, Any]) -> Failure:
    """Parse the JSON of `dataclasses.asdict`; fields of a newer writer are left out."""
    events = tuple(ReplicaEvent(**_known(ReplicaEvent, each)) for each in value.get("events", ()))
    own = {"reason": FailureReason(value["reason"]), "events": events, "log": tuple(value.get("log", ()))}
    return Failure(**{**_known(Failure, value), **own})


def reason_of_exit(exit_code: int) -> FailureReason:
    """Return the reason of a runtime's exit code: it is 1 or 2 where it cannot serve its model."""
    return FailureReason.MODEL_LOAD_FAILED if exit_code in (1, 2) else FailureReason.RUNTIME_UNHEALTHY


def last_lines(text: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the end of a process's output: printable, without values of its environment, bounded in size.

    The first line of longer text is dropped, since it may begin within a value.
    """
    is_cut = len(text.encode()) >= MAX_LOG_BYTES
    lines = hidden(text, env)[-MAX_LOG_BYTES:].splitlines()[1 if is_cut else 0 :]
    return tuple(line for line in map(printable, lines) if line.strip())[-MAX_LOG_LINES:]


def printable(text: str) -> str:
    """Return one line, bounded; unprintable characters become `?`."""
    line = "".join(each if each.isprintable() else " " if each.isspace() else "?" for each in text).rstrip()
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 3] + "..."


def hidden(text: str, env: Mapping[str, str]) -> str:
    """Return the text with values of environment variables as `$(NAME)`.

    Short values such as `4` or `info` stay, since they are words of any log; of variables whose names suggest a secret
    only the very shortest do. Of paths of the machine only the last part stays: a reader of the text may be of a team
    that must not see where the platform keeps its files.
    """
    for name, value in sorted(_to_hide(env), key=lambda item: -len(item[1])):
        text = text.replace(value, f"$({name})")
    return without_folders(text)


def without_folders(text: str) -> str:
    """Return the text with absolute paths of files as `…/NAME`; paths of URLs stay."""
    return _PATH.sub(r"…/\1", text)


def _to_hide(env: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name, value in env.items():
        least = _LEAST_SECRET if _SECRET_NAME.search(name) else _LEAST_HIDDEN
        for part in {value, *value.splitlines()}:  # a log breaks a key of several lines
            if len(part.strip()) >= least:
                yield name, part


def _known(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: item for name, item in value.items() if name in names}
