"""Command line that starts a program in its sandbox."""

import os
import sys
from collections.abc import Mapping, Sequence

from common.errors import InvalidInput
from integrations.sandbox import launch
from integrations.sandbox.policy import Launch, Mode, Sandbox

VARIABLE = "FAIRLEAD_SANDBOX"


def command(
    program: Sequence[str],
    *,
    sandbox: Sandbox | None = None,
    limits: Mapping[str, int] | None = None,
    folder: str = "",
    group: str = "",
    parent: int | None = None,
) -> list[str]:
    """Return the command that becomes `program`, which ends with its parent.

    Args:
        group: the file by which it enters a cgroup.
        parent: the process that starts it; None is this one.

    Raises:
        InvalidInput: `FAIRLEAD_SANDBOX` has an unknown value.
    """
    given = Launch(parent or os.getpid(), limits or {}, sandbox, mode_of(os.environ), folder, group)
    return [sys.executable, "-I", "-S", launch.__file__, given.to_json(), *program]


def mode_of(variables: Mapping[str, str]) -> Mode:
    """Return the mode that the variables set; raises InvalidInput for an unknown one."""
    asked = variables.get(VARIABLE, "") or Mode.BEST
    try:
        return Mode(asked)
    except ValueError:
        raise InvalidInput(f"{VARIABLE} is {asked!r}; it must be one of {', '.join(Mode)}", field=VARIABLE) from None
