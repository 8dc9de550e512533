"""Questions about a model that are answered where models run. Standard library only."""

from dataclasses import dataclass
from enum import StrEnum


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
    """

    kind: JobKind
    artifact_uri: str
    timeout_s: float
    artifact_digest: str = ""
    artifact_origin: str = ""


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `output` is what it printed (JSON), `message` one sentence when `exit_code` is not 0."""

    exit_code: int
    output: str
    message: str = ""
