"""Has a process that `fairlead up` starts wait for the database, which is prepared meanwhile.

What takes such a process longest is its imports, and they need no database: they go on beside its preparation. The pipe
ends when the database is prepared, and however `fairlead up` ends. Processes that others start wait for nothing.
"""

import os

VARIABLE = "FAIRLEAD_PREPARED_FD"


def wait_until_prepared() -> None:
    """Return once the database has this release's tables; at once where `fairlead up` did not start this process."""
    descriptor = os.environ.get(VARIABLE, "")
    if descriptor.isdecimal():
        while os.read(int(descriptor), 1):
            pass
