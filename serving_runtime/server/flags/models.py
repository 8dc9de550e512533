"""Flags of models: repositories, model control, backends."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.backends import registry
from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog import repository_location
from serving_runtime.engine.catalog.repository_location import Location
from serving_runtime.server.flags.types import add_bool, add_config_name, cache_size, count, positive, resource


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Model options, flag by flag.

    Attributes:
        memory_budget_bytes: 0 for no limit, None for automatic.
    """

    repositories: tuple[Location, ...]
    pool: Path | None
    cache_directory: Path | None
    control_mode: str
    load_models: tuple[str, ...]
    poll_secs: int
    load_thread_count: int
    load_retry_count: int
    memory_budget_bytes: int | None
    load_on_demand: bool
    load_on_demand_timeout_s: int
    exit_on_error: bool
    strict_readiness: bool
    config_name: str
    auto_complete: bool
    backend_config: dict[str, dict[str, str]]
    backend_directory: Path | None
    allow_python_models: bool
    sandboxed_model_memory_bytes: int
    cache_bytes: int
    rate_limit: bool
    rate_limit_resources: dict[str, int]

    @classmethod
    def parsed(cls, parser: argparse.ArgumentParser, found: argparse.Namespace) -> "ModelOptions":
        """Return the options in a parsed command line; exits where they contradict each other."""
        if found.load_model and found.model_control_mode != "explicit":
            parser.error("--load-model needs --model-control-mode=explicit")
        if "*" in found.load_model and len(found.load_model) > 1:
            parser.error("--load-model=* loads every model, name no other beside it")
        if found.model_pool is None and not found.model_repository:
            parser.error("the following arguments are required: --model-repository/--model-store")
        if found.model_pool is not None:
            _check_pool(parser, found)
        if found.load_on_demand and found.model_control_mode == "explicit":
            parser.error(
                "--load-on-demand loads by requests, --model-control-mode=explicit by clients' orders: take one"
            )
        for backend, _, _ in found.backend_config:
            if not registry.exists(backend, found.backend_directory):
                known = ", ".join(registry.BUILT_IN)
                parser.error(f"--backend-config={backend}: there is no such backend; built in is {known}")
        if found.rate_limit_resource and found.rate_limit == "off":
            parser.error("--rate-limit-resource needs --rate-limit=execution_count")
        return cls(
            repositories=tuple(found.model_repository),
            pool=found.model_pool,
            cache_directory=found.model_cache_directory,
            control_mode=found.model_control_mode,
            load_models=tuple(found.load_model),
            poll_secs=found.repository_poll_secs,
            load_thread_count=found.model_load_thread_count,
            load_retry_count=found.model_load_retry_count,
            memory_budget_bytes=found.model_memory_budget_bytes,
            load_on_demand=found.load_on_demand or found.model_pool is not None,
            load_on_demand_timeout_s=found.load_on_demand_timeout_secs,
            exit_on_error=found.exit_on_error,
            strict_readiness=found.strict_readiness and found.model_pool is None,
            config_name=found.model_config_name,
            auto_complete=not found.disable_auto_complete_config,
            backend_config=_by_backend(found.backend_config),
            backend_directory=found.backend_directory,
            allow_python_models=found.allow_python_models,
            sandboxed_model_memory_bytes=found.sandboxed_model_memory_bytes,
            cache_bytes=found.cache_config,
            rate_limit=found.rate_limit != "off",
            rate_limit_resources=dict(found.rate_limit_resource),
        )


def add(group: "argparse._ArgumentGroup") -> None:
    """Add the flags."""
    group.add_argument(
        "--model-repository",
        "--model-store",
        action="append",
        type=_location,
        default=[],
        metavar="PLACE",
        help="folder of models, s3://[http[s]://host:port/]bucket/path or gs://bucket/path; may be repeated",
    )
    group.add_argument(
        "--model-pool",
        type=Path,
        metavar="SOCKET",
        help="Unix socket of a `pool-fetcher`: answers for any model of its catalog, in place of a repository",
    )
    group.add_argument(
        "--model-cache-directory",
        type=Path,
        metavar="DIR",
        help="folder for copies of models from s3:// and gs://, kept across restarts (a temporary folder)",
    )
    group.add_argument(
        "--model-control-mode",
        choices=("none", "poll", "explicit"),
        default="none",
        help="none: loads all models at startup; poll: also follows the repository; explicit: loads on request (none)",
    )
    group.add_argument(
        "--load-model",
        action="append",
        default=[],
        metavar="NAME",
        help="model to load at startup in explicit mode, * for all; may be repeated",
    )
    group.add_argument(
        "--repository-poll-secs",
        type=positive,
        default=15,
        metavar="N",
        help="seconds between polls of the repository in poll mode (15)",
    )
    group.add_argument(
        "--model-load-thread-count",
        type=positive,
        default=4,
        metavar="N",
        help="number of models to load concurrently (4)",
    )
    group.add_argument(
        "--model-load-retry-count", type=count, default=0, metavar="N", help="retries of a failed load (0)"
    )
    group.add_argument(
        "--model-memory-budget-bytes",
        type=count,
        metavar="N",
        help="memory limit of all models together, 0 for no limit (80 percent of the memory available to the process)",
    )
    add_bool(
        group,
        "--load-on-demand",
        default=False,
        text="loads a model at its first request, and unloads idle ones for it",
    )
    group.add_argument(
        "--load-on-demand-timeout-secs",
        type=positive,
        default=30,
        metavar="N",
        help="maximum time that a request waits for its model to load (30)",
    )
    add_bool(group, "--exit-on-error", default=True, text="exits when a model fails to load")
    add_bool(group, "--strict-readiness", default=True, text="the server is not ready if a model failed to load")
    add_config_name(group)
    add_bool(
        group,
        "--disable-auto-complete-config",
        default=False,
        text="uses config.pbtxt as it is, and requires it to be complete",
    )
    group.add_argument(
        "--backend-config",
        action="append",
        type=_backend_setting,
        default=[],
        metavar="BACKEND,KEY=VALUE",
        help="onnxruntime: default-max-batch-size (4), intra_op_thread_count (1), inter_op_thread_count (1), "
        "enable-global-threadpool (0)",
    )
    group.add_argument(
        "--backend-directory",
        type=Path,
        metavar="DIR",
        help="folder of custom backends: DIR/NAME/backend.py, imported when a model's config names it",
    )
    add_bool(
        group,
        "--allow-python-models",
        default=False,
        text="serves models whose files are or contain code (backend python), with the server's rights; of a pool "
        "those in Python, each in a sandbox",
    )
    group.add_argument(
        "--sandboxed-model-memory-bytes",
        type=positive,
        default=2 << 30,
        metavar="N",
        help="memory limit of each process that runs a pool's model in Python, beside its libraries (2 GiB)",
    )
    group.add_argument(
        "--cache-config",
        type=cache_size,
        default=0,
        metavar="local,size=BYTES",
        help="caches answers of models whose config has response_cache { enable: true }, up to so many bytes",
    )
    group.add_argument(
        "--rate-limit",
        choices=("off", "execution_count"),
        default="off",
        help="execution_count: runs wait for the resources that instance_group's rate_limiter names (off)",
    )
    group.add_argument(
        "--rate-limit-resource",
        action="append",
        type=resource,
        default=[],
        metavar="NAME:COUNT",
        help="size of a resource (the most that one instance needs); may be repeated",
    )


def _check_pool(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    """Exit where a flag contradicts --model-pool."""
    for asked, flag, why in (
        (found.model_repository, "--model-repository", "a pool's models come from its catalog"),
        (found.model_control_mode != "none", "--model-control-mode", "a pool loads models by requests"),
        (found.max_concurrent_requests, "--max-concurrent-requests", "it counts the requests of every loaded model"),
        (found.allow_client_shm, "--allow-client-shm", "a pool answers clients of many services"),
        (found.workers > 1, "--workers", "each process would load models of its own; run more replicas"),
    ):
        if asked:
            parser.error(f"{flag} does not go with --model-pool: {why}; leave one of the two out")


def _location(text: str) -> Location:
    try:
        return repository_location.parse(text)
    except ModelError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _backend_setting(text: str) -> tuple[str, str, str]:
    """Return backend, key and value; settings of all backends belong to the built-in one."""
    if "," not in text.partition("=")[0]:
        text = f"{next(iter(registry.BUILT_IN))},{text}" if text.startswith("default-max-batch-size=") else text
    backend, comma, setting = text.partition(",")
    key, equals, value = setting.partition("=")
    if not (backend and comma and key and equals):
        raise argparse.ArgumentTypeError(f"'{text}' is not BACKEND,KEY=VALUE")
    return backend, key, value


def _by_backend(settings: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for backend, key, value in settings:
        found.setdefault(backend, {})[key] = value
    return found
