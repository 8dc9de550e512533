"""Why a replica does not serve, with what was found out about it. Standard library only.

What a process or a cluster said is text from outside: it is bounded here, made printable, and rid of what the
environment holds.
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
    """What failed: KServe's reasons where it has them (`status.modelStatus.lastFailureInfo`), else Kubernetes' own.

    MODEL_LOAD_FAILED: the model's files were not there, were others, or the runtime could not load them.
    RUNTIME_UNHEALTHY: the runtime ended by itself or by a signal, or does not say that it is ready.
    OUT_OF_MEMORY: it wanted more memory than it may have.
    IMAGE_PULL_FAILED, CONTAINER_NOT_STARTED, EVICTED: on Kubernetes, before or beside the runtime.
    UNSCHEDULABLE: no machine has what it asks for.
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
    """What the cluster says happened to a replica, `count` times, at last at `at` (Unix seconds)."""

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
        exit_code: of the process that ended, 128 + N for signal N; None where none did.
        container: which part of it failed, such as `prepare`; empty where there is one part only.
        is_final: trying again cannot help: the model, or what its service's file says of it, has to change.
        events: oldest first; `log`: the last lines of the process that failed. Both empty where nothing was found out.
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
    """Return what `dataclasses.asdict` made into JSON; what a newer writer added is left out."""
    events = tuple(ReplicaEvent(**_known(ReplicaEvent, each)) for each in value.get("events", ()))
    own = {"reason": FailureReason(value["reason"]), "events": events, "log": tuple(value.get("log", ()))}
    return Failure(**{**_known(Failure, value), **own})


def reason_of_exit(exit_code: int) -> FailureReason:
    """Return what a runtime's end says: it ends with 1 or 2 where it cannot serve what it was given."""
    return FailureReason.MODEL_LOAD_FAILED if exit_code in (1, 2) else FailureReason.RUNTIME_UNHEALTHY


def last_lines(text: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the end of what a process said: printable, without values of its environment, no more than is kept.

    Of text that is longer than what is kept the first line goes, which may begin in the midst of a value.
    """
    is_cut = len(text.encode()) >= MAX_LOG_BYTES
    lines = hidden(text, env)[-MAX_LOG_BYTES:].splitlines()[1 if is_cut else 0 :]
    return tuple(line for line in map(printable, lines) if line.strip())[-MAX_LOG_LINES:]


def printable(text: str) -> str:
    """Return one line, not too long; what is no text is shown as `?`."""
    line = "".join(each if each.isprintable() else " " if each.isspace() else "?" for each in text).rstrip()
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 3] + "..."


def hidden(text: str, env: Mapping[str, str]) -> str:
    """Return the text with values of environment variables as `$(NAME)`.

    Short values such as `4` or `info` stay, since they are words of any log; of variables whose names speak of a
    secret only the very shortest do. Of paths of the machine only the last part stays: who sees the text may be of a
    team that has nothing to do with where the platform keeps its files.
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
