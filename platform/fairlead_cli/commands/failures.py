"""Replica failures of a service: the last failure of each failing revision, with its log and events."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from fairlead_cli.client import Json, path
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError, EndedBadly, TimedOut
from fairlead_cli.output import render

_FACTS: render.Columns = {
    "reason": "reason",
    "message": "message",
    "at": "at",
    "replica": "replica",
    "container": lambda failure: failure["container"] or None,
    "exit code": "exit_code",
}


def failing(service: Json) -> list[Json]:
    """Return the revisions that a failure keeps from serving now, or that it ended."""
    return [each for each in service["revisions"] if each.get("is_failing") and each.get("last_failure")]


def as_text(revision: Mapping[str, Any]) -> str:
    """Return a revision's last failure in lines."""
    failure = revision["last_failure"]
    parts = [f"last failure of {render.clean(revision['name'])}", _indented(render.facts(failure, _FACTS))]
    if failure["log"]:
        parts += ["its last lines", *(f"  | {render.clean(line)}" for line in failure["log"])]
    if failure["events"]:
        parts += ["what the cluster says of it", *(f"  {_event(each)}" for each in failure["events"])]
    return "\n".join(parts)


@contextmanager
def shown_at_a_bad_end(call: Call, namespace: str, name: str) -> Iterator[None]:
    """Note why replicas of a service fail where the block ends with something that was not as asked, or not in time."""
    try:
        yield
    except (EndedBadly, TimedOut):
        with suppress(CliError):  # an unreadable failure must not hide the command's own error
            for revision in failing(call.client.get(path("services", namespace, name))):
                for line in as_text(revision).splitlines():
                    call.note(line)
        raise


def _event(event: Mapping[str, Any]) -> str:
    times = f" ({event['count']} times)" if event["count"] > 1 else ""
    return f"{render.clean(event['at'])}  {render.clean(event['reason'])}: {render.clean(event['message'])}{times}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
