"""Import states, and its retries with exponential back-off (`jobs.domain.attempts`). Pure.

                   the files are a version
PENDING ───────────────────────────────────▶ IMPORTED
 │  ▲ │
 │  └─┘ it broke off, or its worker died: again from the start, after a growing delay
 │
 └── it cannot be had, somebody stopped it, or it broke off MAX_ATTEMPTS times ──▶ FAILED
"""

from datetime import timedelta
from enum import StrEnum

from jobs.domain.attempts import Retries

MAX_ATTEMPTS = 5
RETRIES = Retries(
    most=MAX_ATTEMPTS,
    first_delay=timedelta(seconds=5),
    fails_at_last=True,
    unknown="the worker did not come to its end",
    advice="import it again",
)


class ImportStatus(StrEnum):
    """States of an import."""

    PENDING = "PENDING"
    IMPORTED = "IMPORTED"
    FAILED = "FAILED"
