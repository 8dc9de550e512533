"""Options and limits of the proxy."""

from dataclasses import dataclass
from pathlib import Path

V1, V2 = PROTOCOLS = ("v1", "v2")


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """Sizes, and times in seconds, that no flag sets.

    Attributes:
        idle_s: for a client's connection without a request, as the runtime's.
        connect_s: to connect to the container.
        probe_s: for a health request to the container.
        silence_s: without any progress of the container's answer or of the request it reads.
        kept_idle_s: for an unused connection to the container. Common servers close theirs after 2 s or more; a
            request sent in that moment would be lost.
        linger_s: for a client to read a refusal, while its further input is discarded.
    """

    idle_s: float = 3660.0
    connect_s: float = 2.0
    probe_s: float = 2.0
    silence_s: float = 3600.0
    kept_idle_s: float = 1.0
    linger_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Parsed options of the command `proxy`.

    Attributes:
        target_port: of the container, at 127.0.0.1.
        health_path: a path of the container that answers 2xx once it is ready; empty for the protocol's own.
        max_input_bytes: of one request's body.
        max_concurrent_requests: with the container at once; 0 for no limit.
    """

    target_port: int
    model_name: str
    protocol: str = V2
    health_path: str = ""
    address: str = "::"
    http_port: int = 8000
    metrics_port: int = 8002
    port_file: Path | None = None
    max_input_bytes: int = 64 * 1024 * 1024
    max_concurrent_requests: int = 0
    exit_timeout_s: int = 30
    revision: str = ""
    limits: ProxyLimits = ProxyLimits()
