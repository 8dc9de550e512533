"""`fairlead-serve` and `python -m serving_runtime`: serve, or with a command's name first, inspect, profile, prepare,
replay or check-config."""

import sys
from collections.abc import Sequence

from serving_runtime.errors import ServingError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] in ("inspect", "profile"):
        from serving_runtime.server import telling  # noqa: PLC0415 - each command imports what it needs

        return telling.main(arguments)
    if arguments and arguments[0] == "check-config":
        from serving_runtime.server import checking  # noqa: PLC0415

        return checking.main(arguments)
    if arguments and arguments[0] == "replay":
        from serving_runtime.server import replaying  # noqa: PLC0415

        return replaying.main(arguments)
    if arguments and arguments[0] == "prepare":
        from serving_runtime.server import preparing  # noqa: PLC0415

        return preparing.main(arguments)
    from serving_runtime.server import options  # noqa: PLC0415

    chosen = options.parse(arguments)
    from serving_runtime.server import slices  # noqa: PLC0415 - --help and bad flags answer before anything is loaded

    try:
        return slices.run(chosen, arguments)
    except ServingError as error:
        sys.stderr.write(f"fairlead-serve: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
