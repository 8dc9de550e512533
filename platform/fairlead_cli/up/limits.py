"""Machine resource limits at start: raises the one that a process may raise itself, and reports close ones."""

import resource
import subprocess
from collections.abc import Mapping

from fairlead_cli.errors import CliError
from fairlead_cli.up import processes
from fairlead_cli.up.home import Home

_MOST_FILES = 1 << 20
_TIMEOUT_S = 30.0


def raise_open_files() -> None:
    """Raise the open file limit of this process and its children to its user's maximum, at most a million."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def close_limits(home: Home, variables: Mapping[str, str]) -> list[str]:
    """Return a sentence for each limit of this machine that the platform comes close to with its services.

    Raises:
        CliError: this machine cannot start another process.
    """
    services = len(list((home.path / "cluster" / "desired").glob("[!.]*.json")))
    try:
        arguments = ["-m", "integrations.machine", "--services", str(services)]
        done = processes.completed(arguments, variables, timeout_s=_TIMEOUT_S)
    except BlockingIOError as error:
        raise CliError(
            "the platform cannot start a process: this user, its cgroup or this machine is at the limit of processes; "
            "end some, or raise `ulimit -u`, TasksMax= of the unit or --pids-limit of the container"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"the limits of this machine could not be read: {error}"]
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return [f"the limits of this machine could not be read: {last}"]
    return done.stdout.splitlines()
