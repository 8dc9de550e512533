"""Questions about a model that are answered, and models that are built, where models run. Standard library only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from integrations.clusters.base.desired import Resources

Told = Callable[[str], None]
"""Gets the last line that a job has said so far, more than once; what it raises ends the job."""


Made = Callable[[Path], None]
"""Gets the folder that a job made, where that is on this machine; it is gone afterwards."""


class JobKind(StrEnum):
    """What a job asks the serving runtime about a model, or has it make of one."""

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
        artifact_digest: digest that the files must have, where they are laid out by others than who stored them.
        artifact_origin, model_config, env, is_code, egress: as of a revision.
        resources: as of a revision; by them it may be asked on a GPU.
        arguments: of the question, beside the model's folder.
        request: a V2 request that the model is to answer; only of the kind TRY.
        request_id: under which a pod fetches it, where it runs elsewhere.
        result_id: under which the folder that the job makes comes back; empty for a question that words answer.
        largest_file_bytes: that it may write; what a cluster takes for itself where it is 0.
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
    env: Mapping[str, str] = field(default_factory=dict)
    is_code: bool = False
    egress: bool | None = False
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `output` is what it printed (JSON), `message` one sentence when `exit_code` is not 0."""

    exit_code: int
    output: str
    message: str = ""
