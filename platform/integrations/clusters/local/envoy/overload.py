"""Envoy's overload manager: what the gateway does as its memory and its connections run out. Pure.

Of the memory that the heap may have, from the least:

    70 % -> 95 %  the streams that hold most are reset, 50 at each look that finds another share than the last
    80 % -> 90 %  timeouts of silent streams and connections shrink from an hour to STALL_S
    90 %          free memory goes back to the operating system
    95 %          new requests get 503
    98 %          so do requests under way over HTTP/1 that send more; their connections are closed

Envoy looks each LOOK_EVERY_S. What arrives between two looks is beyond the limit; a request that nothing has refused
holds at most what the buffers of its two connections do (`listener`, `clusters`).
"""

from typing import Any

MAX_HEAP_BYTES = 1024 * 1024 * 1024

LOOK_EVERY_S = 0.1
"""Envoy's default of a second let 400 clients take 220 MiB more than a limit of 64 MiB."""

STALL_S = 30
"""Idle time after which a stream is ended once memory is short; the runtime's own limit."""

_TRACKED_POWER = 15
"""Streams that hold 2 ** _TRACKED_POWER bytes and more may be reset: half of a gRPC call's window and more."""

_KEPT_FREE_BYTES = 32 * 1024 * 1024
"""Freed memory that Envoy keeps, once memory is short."""

_HEAP_MONITOR = "envoy.resource_monitors.fixed_heap"
_CONNECTIONS_MONITOR = "envoy.resource_monitors.global_downstream_max_connections"
_MONITORS = "type.googleapis.com/envoy.extensions.resource_monitors"
_OVERLOAD = "type.googleapis.com/envoy.config.overload.v3"

Json = dict[str, Any]


def overload_manager(max_heap_bytes: int) -> Json:
    """Return the overload manager of a gateway with this heap limit."""
    connections = {"@type": f"{_MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig"}
    heap = {"@type": f"{_MONITORS}.fixed_heap.v3.FixedHeapConfig", "max_heap_size_bytes": max_heap_bytes}
    return {
        "refresh_interval": f"{LOOK_EVERY_S}s",
        "resource_monitors": [
            {
                "name": _CONNECTIONS_MONITOR,
                "typed_config": {**connections, "max_active_downstream_connections": 20_000},
            },
            {"name": _HEAP_MONITOR, "typed_config": heap},
        ],
        "buffer_factory_config": {"minimum_account_to_track_power_of_two": _TRACKED_POWER},
        "actions": [
            _action("reset_high_memory_stream", _between(0.7, 0.95)),
            _action("reduce_timeouts", _between(0.8, 0.9), _timers()),
            _action("shrink_heap", _from(0.9), _shrink()),
            _action("stop_accepting_requests", _from(0.95)),
        ],
        "loadshed_points": [
            {"name": "envoy.load_shed_points.http1_server_abort_dispatch", "triggers": [_from(0.98)]},
        ],
    }


def _action(name: str, trigger: Json, config: Json | None = None) -> Json:
    action: Json = {"name": f"envoy.overload_actions.{name}", "triggers": [trigger]}
    return action if config is None else {**action, "typed_config": config}


def _from(share: float) -> Json:
    return {"name": _HEAP_MONITOR, "threshold": {"value": share}}


def _between(begin: float, whole: float) -> Json:
    return {"name": _HEAP_MONITOR, "scaled": {"scaling_threshold": begin, "saturation_threshold": whole}}


def _timers() -> Json:
    timers = ("HTTP_DOWNSTREAM_STREAM_IDLE", "HTTP_DOWNSTREAM_CONNECTION_IDLE")
    factors = [{"timer": timer, "min_timeout": f"{STALL_S}s"} for timer in timers]
    return {"@type": f"{_OVERLOAD}.ScaleTimersOverloadActionConfig", "timer_scale_factors": factors}


def _shrink() -> Json:
    kept = {"timer_interval": "1s", "max_unfreed_memory_bytes": _KEPT_FREE_BYTES}
    return {"@type": f"{_OVERLOAD}.ShrinkHeapConfig", **kept}
