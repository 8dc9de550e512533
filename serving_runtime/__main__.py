"""`fairlead-serve` and `python -m serving_runtime`: serve, or with a command's name first, inspect, profile,
pool-fetcher, prepare, proxy, replay, report, transformer, try, tune, build, upload or check-config."""

import sys
from collections.abc import Sequence
from importlib import import_module

from serving_runtime.common.errors import ServingError

_COMMANDS = {
    "build": "build",
    "check-config": "check_config",
    "inspect": "inspect",
    "pool-fetcher": "pool_fetcher",
    "prepare": "prepare",
    "profile": "inspect",
    "proxy": "proxy",
    "replay": "replay",
    "report": "report",
    "transformer": "transformer",
    "try": "try_",
    "tune": "tune",
    "upload": "upload",
}
"""Modules of `server.commands`, by the command that each runs."""

_NEEDED = {
    "google": "protobuf",
    "hpack": "hpack",
    "httptools": "httptools",
    "numpy": "numpy",
    "orjson": "orjson",
    "simdjson": "pysimdjson",
    "uvloop": "uvloop",
}
"""Packages of the extra `serving`, by the module that each installs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except ModuleNotFoundError as error:
        # `pip install fairlead` has brought the command line alone, and this command beside it.
        absent = (error.name or "").partition(".")[0]
        if absent not in _NEEDED:
            raise
        sys.stderr.write(
            f"fairlead-serve: the Python package {_NEEDED[absent]} is not installed; "
            "run: pip install 'fairlead[serving-cpu]'\n"
        )
        return 1


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] in _COMMANDS:
        command = import_module(
            f"serving_runtime.server.commands.{_COMMANDS[arguments[0]]}"
        )  # each imports what it needs
        exit_code: int = command.main(arguments)
        return exit_code
    from serving_runtime.server.flags import command_line  # noqa: PLC0415

    chosen = command_line.parse(arguments)
    from serving_runtime.server.workers import mig_workers  # noqa: PLC0415 - --help and bad flags answer before anything is loaded

    try:
        return mig_workers.run(chosen, arguments)
    except ServingError as error:
        sys.stderr.write(f"fairlead-serve: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
