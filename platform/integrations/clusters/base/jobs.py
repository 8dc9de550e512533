"""Questions about a model that are answered where models run. Standard library only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from integrations.clusters.base.desired import Resources

Told = Callable[[str], None]
"""Gets the last line that a job has said so far, more than once; what it raises ends the job."""


class JobKind(StrEnum):
    """What a job asks the serving runtime about a model."""

    INSPECT = "inspect"
    PROFILE = "profile"
    TUNE = "tune"


@dataclass(frozen=True, slots=True)
class Job:
    """One question about a model, answered by `python -m serving_runtime KIND DIR --json` where models run.

    Attributes:
        artifact_digest: digest that the files must have, where they are laid out by others than who stored them.
        artifact_origin, model_config, env: as of a revision.
        resources: as of a revision; by them it may be asked on a GPU.
        arguments: of the question, beside the model's folder.
    """

    kind: JobKind
    artifact_uri: str
    timeout_s: float
    artifact_digest: str = ""
    artifact_origin: str = ""
    arguments: tuple[str, ...] = ()
    model_config: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `output` is what it printed (JSON), `message` one sentence when `exit_code` is not 0."""

    exit_code: int
    output: str
    message: str = ""
