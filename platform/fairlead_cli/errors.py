"""Errors of the command line, with their exit codes.

    CliError            1  refused or failed; the message says why
    ├── EndedBadly      3  what was waited for ended otherwise than asked (rollout Degraded, version REJECTED)
    │   └── Aborted     6  the rollout (repartition) that was waited for was aborted, by a person or otherwise
    ├── TimedOut        4  what was waited for had not ended when the time was up
    ├── Unreachable     5  the control plane did not answer
    │   └── BrokenOff   5  it went away in the middle of a request
    └── StoppedWaiting  130  Ctrl-C while something was waited for that goes on

A wrong command line ends with 2 (argparse), Ctrl-C anywhere else with 130 and no message.
"""

from dataclasses import dataclass
from http import HTTPStatus

EXIT_CODES = {
    0: "success; an awaited rollout is Healthy, an awaited repartition Done",
    1: "refused or failed",
    2: "invalid command line",
    3: "the awaited operation ended otherwise than requested: rollout Degraded, version REJECTED, "
    "service refused for good",
    4: "timeout; the awaited operation continues",
    5: "the control plane does not answer",
    6: "the awaited rollout or repartition was Aborted",
    130: "Ctrl-C",
}


class CliError(Exception):
    """Ends the command with one sentence on stderr."""

    exit_code = 1


class EndedBadly(CliError):  # noqa: N818 - it says what happened
    """The awaited operation ended, but not as requested."""

    exit_code = 3


class Aborted(EndedBadly):
    """The awaited operation was aborted: a rollout ended by a decision, not for a bad version."""

    exit_code = 6


class TimedOut(CliError):  # noqa: N818
    """The awaited operation is still running."""

    exit_code = 4


class StoppedWaiting(CliError):  # noqa: N818
    """Ctrl-C ended the wait, and nothing else."""

    exit_code = 130


class Unreachable(CliError):  # noqa: N818
    """No answer from the control plane."""

    exit_code = 5


class BrokenOff(Unreachable):
    """The connection ended before the answer: whether the request took effect is unknown."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The API's error as it came; `retry_after_s` is 0 where it names no time for another try."""

    status: int
    code: str
    message: str
    field: str | None = None
    request_id: str = ""
    details: tuple[str, ...] = ()
    retry_after_s: int = 0


class ApiError(CliError):
    """The control plane refused; `refusal` holds its error."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(_with_request(refusal))
        self.refusal = refusal


def _with_request(refusal: Refusal) -> str:
    """Return the message with a line for each detail that it does not contain, or a server error's request id."""
    if refusal.status != HTTPStatus.INTERNAL_SERVER_ERROR or not refusal.request_id:
        return "\n".join([refusal.message, *(f"  {each}" for each in refusal.details if each not in refusal.message)])
    return f"{refusal.message} (request {refusal.request_id})"


class NotFound(ApiError):  # noqa: N818
    """The control plane has no such object."""
