"""What the command line says about loading models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """What the command line says about loading.

    Attributes:
        backend_settings: --backend-config, by backend.
        backend_directory: where the operator's own backends are.
        config_name: of the files configs/<name>.pbtxt that go before config.pbtxt; empty for none.
        retry_count: how often to try again to open a version that failed.
        summaries: whether models keep quantiles of their latencies.
        allow_python_models: whether a model's file may be code, or hold code.
        one_of_several: whether the requests of one client may reach other processes too.
        memory_bytes: the most that one model may take, as it is loaded and first run; None for all memory there is.
        trial: whether files that native code reads are loaded by a process of their own first.
        guards_others: whether models are served that a load could end: graphs are tried, too.
        cache_directory: where it is kept which of them were good; None for as long as the process lives.
    """

    auto_complete: bool = True
    backend_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    backend_directory: Path | None = None
    config_name: str = ""
    retry_count: int = 0
    summaries: bool = False
    allow_python_models: bool = False
    one_of_several: bool = False
    memory_bytes: int | None = None
    trial: bool = True
    guards_others: bool = False
    cache_directory: Path | None = None
