"""Settings of model loading, from the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PoolCode:
    """What a pool does with models in Python.

    Attributes:
        allowed: whether it loads them.
        memory_bytes: limit of the sandboxed process that each one gets.
    """

    allowed: bool = False
    memory_bytes: int = 2 << 30


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """Command line options on loading.

    Attributes:
        backend_settings: --backend-config, by backend.
        backend_directory: folder of the operator's own backends.
        config_name: of the files configs/<name>.pbtxt that precede config.pbtxt; empty for none.
        retry_count: how often to retry opening a version that failed.
        summaries: whether models keep quantiles of their latencies.
        allow_python_models: whether a model's file may be code, or hold code.
        pool: where these are the models of a pool (`pool_rules`); None elsewhere.
        one_of_several: whether the requests of one client may reach other processes too.
        memory_bytes: memory limit of one model's load and first run; None for the machine's memory.
        trial: whether files that native code reads are first loaded by a separate process.
        guards_others: whether a load could crash models that are served: graphs are tried, too.
        cache_directory: keeps the digests of good trials; None for the life of the process only.
    """

    auto_complete: bool = True
    backend_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    backend_directory: Path | None = None
    config_name: str = ""
    retry_count: int = 0
    summaries: bool = False
    allow_python_models: bool = False
    pool: PoolCode | None = None
    one_of_several: bool = False
    memory_bytes: int | None = None
    trial: bool = True
    guards_others: bool = False
    cache_directory: Path | None = None
