"""`fairlead clusters`: clusters where services run."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fairlead_cli.client import Json, path
from fairlead_cli.context import Call
from fairlead_cli.errors import CliError
from fairlead_cli.files.apply_file import apply_file, file_arguments
from fairlead_cli.files.documents import read_documents
from fairlead_cli.output import render

_COLUMNS: render.Columns = {
    "name": "name",
    "kind": "kind",
    "parts": lambda row: ", ".join(
        f"{part['name']} {'up' if part['ready'] else 'down'}" for part in row.get("components", [])
    ),
    "seen": "checked_at",
    "problem": "problem",
}
FINDINGS: render.Columns = {
    "": lambda row: "ok" if row["ok"] else "no",
    "about": "about",
    "found": "message",
    "what to do": "remedy",
}


_GPUS: render.Columns = {
    "node": "node",
    "gpu": "product",
    "mig": "strategy",
    "pods ask for": "resource",
    "there are": "total",
    "taken": "taken",
    "note": "note",
}


def list_clusters(call: Call) -> None:
    """Lists the clusters."""
    call.show_list(call.client.all("clusters"), _COLUMNS)


def _limits(row: Mapping[str, Any]) -> str:
    """Return how close each limit of the machine is, and what to do of those that are close."""
    found = row.get("limits", [])
    return ", ".join(f"{limit['name']} {limit['level']}" for limit in found) + "".join(
        f"; {limit['message']}" for limit in found if limit["message"]
    )


def _credentials(row: Mapping[str, Any]) -> str:
    """Return when each credential ends."""
    found = row.get("credentials", [])
    return ", ".join(f"{each['kind'].replace('_', ' ')} until {each['expires_at']}" for each in found)


def name_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the cluster")


def show_cluster(call: Call) -> None:
    """Shows one cluster: its components, its connection, and what runs on it."""
    shown: render.Columns = {
        **_COLUMNS,
        "limits": _limits,
        "gateway": "gateway_url",
        "credentials": _credentials,
        "services": lambda row: ", ".join(row["services"]),
    }
    call.show(call.client.get(path("clusters", call.options.name)), shown)


def show_gpus(call: Call) -> None:
    """Shows the GPUs and MIG slices of a cluster's nodes, and how many are allocated to pods."""
    found = call.client.get(path("clusters", call.options.name, "gpus"))
    if call.as_json:
        print(render.as_json(found))
        return
    if found["unknown"]:
        raise CliError(f"nothing is known of the nodes of {call.options.name}: {found['unknown']}")
    rows = [{**node, **use, "node": node["name"]} for node in found["nodes"] for use in node["uses"]]
    call.show_list(rows, _GPUS)


def delete_cluster(call: Call) -> None:
    """Deletes the registration of a cluster on which no service runs."""
    call.client.delete(path("clusters", call.options.name))
    call.done(f"deleted cluster {call.options.name}", deleted=call.options.name)


def apply_arguments(parser: argparse.ArgumentParser) -> None:
    file_arguments(parser)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig to send along, so that the cluster file contains none",
    )
    parser.add_argument(
        "--namespace", metavar="NAMESPACE", help="another namespace for services, in which patches are tried too"
    )


def apply_cluster(call: Call) -> None:
    """Creates or changes clusters from files; a kubeconfig is stored encrypted and never shown again."""
    given = call.options.kubeconfig
    kubeconfig = None if given is None else read_documents(given)[0]

    def prepared(document: Json) -> Json:
        if kubeconfig is None:
            return document
        connection = document.get("connection")
        return {
            **document,
            "connection": {**(connection if isinstance(connection, dict) else {}), "kubeconfig": kubeconfig},
        }

    apply_file(call, lambda document: _where(call, document), _COLUMNS, query=_query(call), prepared=prepared)


def check_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument("--namespace", metavar="NAMESPACE", help="another namespace for services to check")


def check_cluster(call: Call) -> None:
    """Checks whether services can run on a cluster; exits with 1 and prints the remedy where something is missing."""
    query = _query(call)
    found = call.client.get(path("clusters", call.options.name, "check") + (f"?{query}" if query else ""))
    if call.as_json:
        print(render.as_json(found))
    else:
        call.show_list(found["findings"], FINDINGS)
    if not found["ok"]:
        raise CliError(f"cluster {call.options.name} needs the remedies above")


def _query(call: Call) -> str:
    namespace = call.options.namespace
    return urlencode({"namespace": namespace}) if namespace else ""


def _where(call: Call, document: Json) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise CliError(f"{call.options.file} names no cluster; expected a field `name`")
    return path("clusters", name)
