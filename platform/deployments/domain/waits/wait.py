"""Wait value, and its formats of moments and durations. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason for a wait.

    Attributes:
        condition: a code for programs, such as `AnalysisRunning`.
        evidence: the observation, in one sentence.
        sample_size: the number of the canary's requests (or copies to the shadow) in the evidence; None without
            requests.
        changes_when: what would change it, in one sentence.
        since: when the condition began.
    """

    condition: str
    evidence: str
    sample_size: int | None
    changes_when: str
    since: datetime


def moment(at: datetime) -> str:
    """Return a moment in the format of sentences: `2026-01-01 12:00:10 UTC`."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def about(span: timedelta) -> str:
    """Return a future duration as an estimate: `about 40 seconds`, `about 3 minutes`, `about 2 hours`."""
    seconds = max(1, round(span.total_seconds()))
    for size, unit in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= 1.5 * size or size == 1:
            count = round(seconds / size)
            return f"about {count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError("every span has seconds")  # pragma: no cover
