"""Options, limits and targets of the proxy."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

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
        target_port: of the container, at 127.0.0.1; 0 where programs take its place.
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


@dataclass(frozen=True, slots=True)
class Target:
    """A server at 127.0.0.1, and how it says that it is ready.

    Attributes:
        name: in messages.
        health_path: answers 2xx once it is ready.
        reads_health: the body of that answer may say "ready": false, as V1's.
        is_runtime: it is the platform's own runtime, whose header `fairlead-rows` counts.
    """

    port: int
    name: str = "the container"
    health_path: bytes = b"/v2/health/ready"
    reads_health: bool = False
    is_runtime: bool = False

    @classmethod
    def of_options(cls, options: ProxyOptions, port: int, name: str) -> "Target":
        """Return a server of the user's own, with the readiness check of the protocol or of `health_path`."""
        if options.health_path:
            return cls(port, name, options.health_path.encode())
        if options.protocol == V1:
            return cls(port, name, b"/v1/models/" + quote(options.model_name, safe="").encode(), reads_health=True)
        return cls(port, name)


@dataclass(frozen=True, slots=True)
class Targets:
    """The servers that one proxy forwards to.

    Attributes:
        first: gets all requests that the explainer does not get.
        explainer: gets explain requests; None where `first` gets them.
        behind: gets none from here, and has to be ready too: the predictor of a transformer.
    """

    first: Target
    explainer: Target | None = None
    behind: Target | None = None

    @classmethod
    def of_container(cls, options: ProxyOptions) -> "Targets":
        return cls(Target.of_options(options, options.target_port, "the container"))

    def __iter__(self) -> Iterator[Target]:
        """Yield all of them, in the order in which they depend on each other."""
        yield from (each for each in (self.behind, self.first, self.explainer) if each is not None)
