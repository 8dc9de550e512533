"""What the benchmark asks of a server."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.serving.models import Model
from benchmarks.serving.processes import Process
from benchmarks.serving.requests import Body

Post = Callable[[Model], tuple[str, Body]]
"""From a model to the URL and what to post there."""


@dataclass(frozen=True)
class Running:
    """A server that was started.

    Attributes:
        ready: whether it answers for all its models.
        http: its quickest form over HTTP, binary where it has one; None for none.
        json: V2's JSON, or its own.
        grpc_port: where it speaks V2 over gRPC; None for nowhere.
        headers: that every request needs, in `http` already.
    """

    process: Process
    ready: Callable[[], bool]
    http: Post | None = None
    json: Post | None = None
    grpc_port: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Peer(Protocol):
    """A server as its users would run it, on one core.

    Attributes:
        requirements: what is installed for it into an environment of its own; empty for the project's.
        serves: names of models, without those that it has no use for.
        pauses: whether it goes on as before once it was stopped by a signal for a while.
    """

    name: str
    requirements: tuple[str, ...]
    serves: tuple[str, ...]
    pauses: bool

    def start(self, python: Path, models: Path, scratch: Path) -> Running:
        """Start it with the models' files, which are `models/NAME.onnx`."""
        ...


def link(file: Path, place: Path) -> None:
    """Put a model's file into a repository."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, place)
    except OSError:  # another file system
        shutil.copyfile(file, place)


PEER_MODELS = Path(__file__).parents[1] / "peer_models"
"""Modules that peers import."""
