"""Startup barrier: a process that `fairlead up` starts waits for the database, which is prepared meanwhile.

Its imports take longest and need no database: they run beside its preparation. The pipe closes when the database is
prepared, and however `fairlead up` ends. Processes with other parents wait for nothing.
"""

import os

VARIABLE = "FAIRLEAD_PREPARED_FD"


def wait_until_prepared() -> None:
    """Return once the database has this release's tables; at once where `fairlead up` did not start this process."""
    descriptor = os.environ.get(VARIABLE, "")
    if descriptor.isdecimal():
        while os.read(int(descriptor), 1):
            pass
