"""`fairlead pools`: model pools, and what their replicas report."""

import argparse
from collections.abc import Mapping
from typing import Any

from fairlead_cli.client import path
from fairlead_cli.context import Call, service_path
from fairlead_cli.output import render


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['namespace']}/{row['name']}"


def _hits(figures: Mapping[str, Any]) -> str:
    share = figures["hit_percent"]
    return "-" if share is None else f"{share:.1f} %"


def _memory(figures: Mapping[str, Any]) -> str:
    limit = figures["memory_limit_bytes"]
    return render.size(figures["memory_bytes"]) + (f" of {render.size(limit)}" if limit else "")


def _loads(figures: Mapping[str, Any]) -> str:
    longest = figures["load_p99_ms"]
    return f"{figures['loads']}" + ("" if longest is None else f", 99 % within {longest:.0f} ms")


_POOLS: render.Columns = {
    "pool": _name,
    "cluster": "cluster",
    "phase": "phase",
    "services": "services",
    "memory for models": lambda row: render.size(row["memory_budget_bytes"]),
    "shared with": lambda row: ", ".join(row["shared_with"]),
}
_FACTS: render.Columns = {
    **_POOLS,
    "reason": "reason",
    "memory of models": lambda row: _memory(row["figures"]),
    "loaded models": lambda row: row["figures"]["loaded_models"],
    "hits": lambda row: _hits(row["figures"]),
    "loads": lambda row: _loads(row["figures"]),
    "failed loads": lambda row: ", ".join(f"{n} {why}" for why, n in row["figures"]["load_failures"].items()),
    "evictions": lambda row: row["figures"]["evictions"],
    "waiting requests": lambda row: row["figures"]["waiting"],
    "advice": lambda row: " ".join(row.get("advice", ())) or "-",
    "missing figures": "problem",
}
_REPLICAS: render.Columns = {
    "replica": "replica",
    "memory of models": _memory,
    "loaded models": "loaded_models",
    "hits": _hits,
    "loads": _loads,
    "evictions": "evictions",
}
_SERVICES: render.Columns = {
    "service": _name,
    "phase": "phase",
    "copies": lambda row: row.get("copies", 1),
    "reason": "reason",
}


def where_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--namespace", default="", metavar="NAMESPACE", help="only pools of this namespace")


def pool_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL", help="NAME or NAMESPACE/NAME")


def list_pools(call: Call) -> None:
    """Lists the model pools."""
    asked = {"namespace": call.options.namespace} if call.options.namespace else {}
    call.show_list(call.client.all(path("model-pools"), filters=asked), _POOLS)


def show_pool(call: Call) -> None:
    """Shows a model pool with what its replicas report: memory of models, hits, loads, evictions."""
    pool = call.client.get(_path(call))
    call.show(pool, _FACTS)
    if not call.as_json:
        print()
        call.show_list(pool["replicas"], _REPLICAS)


def list_services(call: Call) -> None:
    """Lists the services in a model pool."""
    call.show_list(call.client.all(_path(call, "services")), _SERVICES)


def _path(call: Call, *further: str) -> str:
    return path("model-pools", *service_path(call.options.pool), *further)
