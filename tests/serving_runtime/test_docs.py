"""The reference page lists the flags and metrics that there are, all of them and no others."""

import re
from pathlib import Path

from serving_runtime.config.support import HONOURED
from serving_runtime.devices.gpu import Gpu
from serving_runtime.devices.nvml import Reading
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.pools.metrics import PoolCounts
from serving_runtime.protocol.http.api.v2 import V2Application
from serving_runtime.server.commands import pool_fetcher, proxy
from serving_runtime.server.flags import command_line
from serving_runtime.server.flags.refused import REFUSED
from serving_runtime.telemetry.metrics.cpu import CpuMeter
from serving_runtime.telemetry.metrics.families import families
from serving_runtime.telemetry.metrics.gpus import gpu_families
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.tap.tap import TapCounts
from serving_runtime.telemetry.tap.taps import LOGGER_METRIC, TAP_METRIC, events_family

MODEL_CONFIG = (Path(__file__).parents[2] / "docs" / "reference" / "model-config.md").read_text()
POOLS = (Path(__file__).parents[2] / "docs" / "reference" / "model-pools.md").read_text()
PROTOCOL = (Path(__file__).parents[2] / "docs" / "reference" / "serving-protocol.md").read_text()
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "serving-runtime.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_flag_is_listed_and_nothing_else() -> None:
    parser = command_line._parser()
    flags = {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}
    listed, _, refused = section("Flags").partition("### Unsupported flags of Triton")
    assert set(re.findall(r"`(--[a-z0-9-]+)`", listed)) == flags - set(REFUSED)
    assert dict(re.findall(r"^\| `(--[a-z0-9-]+)` \| (.+) \|$", refused, re.MULTILINE)) == REFUSED


def test_every_flag_of_the_proxy_is_listed_and_nothing_else() -> None:
    flags = {flag for action in proxy._parser()._actions for flag in action.option_strings if flag.startswith("--")}
    assert set(re.findall(r"^\| `(--[a-z_-]+)` \|", section("Proxy"), re.MULTILINE)) == flags - {"--help"}


def test_every_http_path_and_grpc_call_is_listed_and_nothing_else() -> None:
    table = PROTOCOL.split("\n## Endpoints\n")[1].split("\n## ")[0]
    listed = {
        f"{method} {path}"
        for method, pattern in re.findall(r"`(GET|POST) ([^`]+)`", table)
        for path in variants(pattern)
    }
    application = V2Application(Engine([], LoadSettings()))
    assert listed == {f"{route.method} {route.path}" for route in application._routes.all}


def variants(pattern: str) -> set[str]:
    """Return the paths that a pattern with [optional] parts, which may be nested, stands for."""
    optional = re.search(r"\[([^\[\]]*)\]", pattern)
    if optional is None:
        return {pattern}
    before, after = pattern[: optional.start()], pattern[optional.end() :]
    return variants(before + after) | variants(before + optional[1] + after)


def test_every_metric_is_listed_with_its_kind_and_nothing_else() -> None:
    settings = MetricsSettings(summary_latencies=True, histogram_latencies=True)
    every = [
        *families([], settings, CpuMeter().use),
        *gpu_families([Reading(Gpu("GPU-a", "H100", 1), 0, 0, 0, 0, 0, 0)]),
        *(events_family(name, TapCounts()) for name in (TAP_METRIC, LOGGER_METRIC)),
    ]
    kinds = {family.name: family.kind for family in every}
    assert dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", section("Metrics"), re.MULTILINE)) == kinds


def test_every_flag_and_metric_of_a_pool_is_listed_and_nothing_else() -> None:
    fetcher = POOLS.split("\n## Fetcher\n")[1].split("\n## ")[0]
    flags = {flag for action in pool_fetcher._parser()._actions for flag in action.option_strings if flag[:2] == "--"}
    assert set(re.findall(r"^\| `(--[a-z-]+)` \|", fetcher, re.MULTILINE)) == flags - {"--help"}
    page = PoolCounts().families(loaded_models=0, used_bytes=0, limit_bytes=None, waiting=0)
    kinds = {family.name: family.kind for family in page}
    assert dict(re.findall(r"^\| `(fairlead_pool_\w+)` \| (\w+) \|", POOLS, re.MULTILINE)) == kinds


def test_every_honoured_field_is_listed() -> None:
    listed = MODEL_CONFIG.split("\n## Fields\n")[1].split("\n## ")[0]
    top = {field.partition(".")[0] for field in HONOURED}
    assert [field for field in sorted(top) if f"`{field}" not in listed] == []
