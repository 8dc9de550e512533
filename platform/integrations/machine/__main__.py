"""Resource limit check: `python -m integrations.machine --services N`, started by `fairlead up` before all else.

Prints a line for each limit of this machine that the platform would come close to with so many services, and nothing
where all are fine.
"""

import argparse
import os

from integrations.machine import readings
from integrations.machine.limits import before_start, tightest


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(prog="python -m integrations.machine", description="Limits of this machine.")
    parser.add_argument("--services", type=int, default=0, metavar="N", help="how many services are to be started")
    found = readings.read({"each process of the platform": os.getpid()})
    for limit in tightest(before_start(found, parser.parse_args().services)):
        if limit.sentence:
            print(limit.sentence)  # noqa: T201 - a command line's answer


if __name__ == "__main__":
    main()
