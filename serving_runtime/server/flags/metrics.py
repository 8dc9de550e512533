"""Flags of the metrics endpoint."""

import argparse
import dataclasses
from dataclasses import dataclass
from typing import Any

from serving_runtime.server.flags.types import INHERITED, UNIX, add_bool, boolean, endpoint, port_number, positive
from serving_runtime.telemetry.metrics.settings import MetricsSettings


@dataclass(frozen=True, slots=True)
class MetricsOptions:
    """Metrics options.

    Attributes:
        cpu: whether to show CPU and memory metrics of the machine.
        gpu: whether to show GPU metrics, where it has GPUs.
    """

    allow: bool
    address: str
    port: int
    cpu: bool
    gpu: bool
    interval_ms: int
    settings: MetricsSettings

    @classmethod
    def parsed(cls, parser: argparse.ArgumentParser, found: argparse.Namespace) -> "MetricsOptions":
        """Return the options in a parsed command line; exits where they contradict each other."""
        address = found.metrics_address if found.metrics_address is not None else found.http_address
        if found.metrics_address is None and found.allow_metrics and address.startswith((UNIX, INHERITED)):
            parser.error(f"--http-address={address} has no port beside which metrics could be; give --metrics-address")
        settings = MetricsSettings()
        for name, value in found.metrics_config:
            settings = dataclasses.replace(settings, **{name: value})
        return cls(
            allow=found.allow_metrics,
            address=address,
            port=found.metrics_port,
            cpu=found.allow_cpu_metrics,
            gpu=found.allow_gpu_metrics,
            interval_ms=found.metrics_interval_ms,
            settings=settings,
        )


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    add_bool(group, "--allow-metrics", default=True, text="listens for metrics requests")
    group.add_argument(
        "--metrics-address",
        type=endpoint,
        metavar="ADDRESS",
        help="address of the metrics endpoint, also unix:/path or fd:N (the HTTP one)",
    )
    group.add_argument(
        "--metrics-port",
        type=port_number,
        default=8002,
        metavar="PORT",
        help="port of the metrics endpoint, 0 for a free one (8002)",
    )
    add_bool(group, "--allow-cpu-metrics", default=True, text="exports metrics of the machine's CPU and memory")
    add_bool(
        group,
        "--allow-gpu-metrics",
        default=True,
        text="exports metrics of the GPUs or slices that this process may use",
    )
    group.add_argument(
        "--metrics-interval-ms",
        type=positive,
        default=2000,
        metavar="N",
        help="milliseconds between samples of the machine's CPU, memory and GPUs (2000)",
    )
    group.add_argument(
        "--metrics-config",
        action="append",
        type=_setting,
        default=[],
        metavar="NAME=VALUE",
        help="counter_latencies (true), summary_latencies (false), summary_quantiles (0.5:0.05,0.9:0.01,0.95:0.001,"
        "0.99:0.001), histogram_latencies (false); may be given several times",
    )


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    if name == "summary_quantiles":
        return name, _quantiles(value)
    if name in ("counter_latencies", "summary_latencies", "histogram_latencies"):
        return name, boolean(value)
    raise argparse.ArgumentTypeError(
        f"there is no '{name}'; there are counter_latencies, summary_latencies, summary_quantiles, histogram_latencies"
    )


def _quantiles(text: str) -> tuple[float, ...]:
    """Return the quantiles of `q:error,q:error`; the errors are checked and unused, ours are smaller."""
    quantiles = []
    for item in text.split(","):
        quantile, _, error = item.partition(":")
        try:
            found = float(quantile), float(error)
        except ValueError as wrong:
            raise argparse.ArgumentTypeError(f"'{item}' is not QUANTILE:ERROR, as in 0.99:0.001") from wrong
        if not all(0 <= number <= 1 for number in found):
            raise argparse.ArgumentTypeError(f"'{item}': quantile and error must be from 0 to 1")
        quantiles.append(found[0])
    return tuple(quantiles)
