"""Jobs about a model: questions that are answered, and builds, where models run. Standard library only."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from integrations.clusters.base.desired import Resources

OnStage = Callable[[str], None]
"""Receives the last output line of a job so far, repeatedly; what it raises ends the job."""


Made = Callable[[Path], None]
"""Receives the folder that a job made, where it ran on this machine; it is removed afterwards."""


class JobKind(StrEnum):
    """Kinds of jobs: questions to the serving runtime about a model, and builds."""

    INSPECT = "inspect"
    PROFILE = "profile"
    TUNE = "tune"
    BUILD = "build"
    TRY = "try"

    @property
    def loads_the_model(self) -> bool:
        """Whether the runtime takes the flags of how models are loaded."""
        return self is not JobKind.BUILD


@dataclass(frozen=True, slots=True)
class Job:
    """One question about a model, answered by `python -I -m serving_runtime KIND DIR --json` where models run.

    Attributes:
        artifact_digest: required digest of the files, where others lay them out than the store.
        artifact_origin, model_config, env, is_code, egress: as of a revision; on the local cluster `env` has the values
            of secrets too.
        resources: as of a revision; they may put it on a GPU.
        arguments: of the question, beside the model's folder.
        request: a V2 request for the model to answer; only of the kind TRY.
        request_id: under which a pod fetches it, where it runs elsewhere.
        result_id: under which the resulting folder is uploaded; empty for a question with a text answer.
        largest_file_bytes: that it may write; 0 is the cluster's own limit.
    """

    kind: JobKind
    artifact_uri: str
    timeout_s: float
    artifact_digest: str = ""
    artifact_origin: str = ""
    arguments: tuple[str, ...] = ()
    request: bytes = b""
    request_id: str = ""
    result_id: str = ""
    largest_file_bytes: int = 0
    model_config: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_code: bool = False
    egress: bool | None = False
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class JobResult:
    """Result of a job: `output` is its standard output (JSON), `message` one sentence when `exit_code` is not 0."""

    exit_code: int
    output: str
    message: str = ""


class Checker(Protocol):
    """A process that inspects and profiles many models, none of which can influence another's result."""

    runs: bool
    """Whether it can be used; once it cannot, `run` returns None."""

    def run(self, job: Job) -> JobResult | None:
        """Run the job; None where it has to run by itself (`ClusterDriver.run`)."""


@runtime_checkable
class ChecksMany(Protocol):
    """A driver that can check many models by one process."""

    def checker(self, timeout_s: float) -> AbstractContextManager[Checker | None]:
        """Start a checker for questions of at most `timeout_s`, and end it; None where the machine allows none."""
