"""Questions about a model that are answered where models run. Standard library only."""

from dataclasses import dataclass, field
from enum import StrEnum

from integrations.clusters.base.desired import Resources


class JobKind(StrEnum):
    """What a job asks the serving runtime about a model."""

    INSPECT = "inspect"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Job:
    """One question about a model, answered by `python -m serving_runtime KIND DIR --json` where models run.

    Attributes:
        artifact_digest: digest that the files must have, where they are laid out by others than who stored them.
        artifact_origin: as of a revision.
        resources: as of a revision; by them it may be asked on a GPU.
    """

    kind: JobKind
    artifact_uri: str
    timeout_s: float
    artifact_digest: str = ""
    artifact_origin: str = ""
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `output` is what it printed (JSON), `message` one sentence when `exit_code` is not 0."""

    exit_code: int
    output: str
    message: str = ""
