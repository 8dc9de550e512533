"""`fairlead services` and `fairlead events`: what is served."""

import argparse
from pathlib import Path
from typing import Any

from fairlead_cli import render
from fairlead_cli.call import Call, read_document, service_path
from fairlead_cli.client import path
from fairlead_cli.errors import CliError

_COLUMNS: render.Columns = {
    "namespace": "namespace",
    "name": "name",
    "phase": "phase",
    "model": "model",
    "version": "model_version",
    "rollout": lambda row: _rollout(row.get("rollout")),
    "reason": "reason",
}
_FACTS: render.Columns = {**_COLUMNS, "policy": "policy", "url": "url", "created": "created_at"}
_REVISIONS: render.Columns = {
    "revision": "name",
    "version": "model_version",
    "role": "role",
    "ready": lambda row: f"{row['replicas_ready']}/{row['replicas_wanted']}",
    "weight": lambda row: render.percent(row["weight_actual"]),
    "wanted": lambda row: render.percent(row["weight_wanted"]),
    "restarts": "restarts",
}
_EVENTS: render.Columns = {"seq": "seq", "at": "at", "kind": "kind", "revision": "revision", "message": "message"}


def service_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help="NAME or NAMESPACE/NAME")


def list_services(call: Call) -> None:
    """List the services."""
    call.show_list(call.client.all("services"), _COLUMNS)


def show_service(call: Call) -> None:
    """Show one service with its revisions."""
    service = call.client.get(path("services", *service_path(call.options.service)))
    call.show(service, _FACTS)
    if not call.as_json:
        print()
        call.show_list(service["revisions"], _REVISIONS)


def delete_service(call: Call) -> None:
    """Take a service down and forget it."""
    namespace, name = service_path(call.options.service)
    call.client.delete(path("services", namespace, name))
    call.done(f"deleting service {namespace}/{name}", deleting=f"{namespace}/{name}")


def apply_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--file", required=True, type=Path, help="service file (YAML or JSON); - for standard input"
    )


def apply_service(call: Call) -> None:
    """Make a service, or change it; a change that can change answers starts a rollout."""
    document = read_document(call.options.file)
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        raise CliError(f"{call.options.file} names no service; expected a field `metadata.name`")
    service = call.client.put(path("services", metadata.get("namespace") or "default", name), document)
    call.show(service, _FACTS)


def events_arguments(parser: argparse.ArgumentParser) -> None:
    service_argument(parser)
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many of the newest (50)")


def events(call: Call) -> None:
    """Show what happened to a service, oldest first."""
    found = call.client.all(path("services", *service_path(call.options.service), "events"), call.options.limit)
    call.show_list(found[::-1], _EVENTS)


def _rollout(rollout: dict[str, Any] | None) -> str:
    if rollout is None:
        return "-"
    return f"{rollout['phase']} {rollout['from_version']} -> {rollout['to_version']}, {rollout['weight_actual']} %"
