"""What the command line says when it cannot do what was asked, and the exit code that goes with it.

    CliError            1  refused or failed; the message says why
    ├── EndedBadly      3  what was waited for ended otherwise than asked (rollout Degraded, version REJECTED)
    ├── TimedOut        4  what was waited for had not ended when the time was up
    └── Unreachable     5  the control plane did not answer

A wrong command line ends with 2 (argparse), Ctrl-C with 130.
"""

from dataclasses import dataclass


class CliError(Exception):
    """Ends the command with one sentence on stderr."""

    exit_code = 1


class EndedBadly(CliError):  # noqa: N818 - it says what happened
    """What was waited for ended, but not as asked."""

    exit_code = 3


class TimedOut(CliError):  # noqa: N818
    """What was waited for is still under way."""

    exit_code = 4


class Unreachable(CliError):  # noqa: N818
    """No answer from the control plane."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """The API's error as it came."""

    status: int
    code: str
    message: str
    field: str | None = None
    request_id: str = ""


class ApiError(CliError):
    """The control plane refused; `refusal` holds what it said."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class NotFound(ApiError):  # noqa: N818
    """The control plane knows no such thing."""
