"""Prints each minute how far the suites are that run side by side, whose own output comes when they end.

`python -m tests.suites.progress` runs until it is killed.
"""

import sys
import time
from datetime import UTC, datetime

from tests.suites.table import FOLDER, suites

_EVERY_S = 60.0


def main() -> int:
    """Print a line a minute."""
    while True:
        time.sleep(_EVERY_S)
        words = [f"{suite['suite']} {len(suite['tests']):,} tests, {suite['summary']}" for suite in suites(FOLDER)]
        sys.stdout.write(f"-- {datetime.now(UTC):%T} {'; '.join(words) or 'no suite has begun'}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
