"""Celery beat scheduler in memory, without beat's file, where a full disk would end it.

Every task is due when beat starts, and then as often as scheduled: an hourly task also runs where the platform is
restarted more often.
"""

from datetime import UTC, datetime

from celery import beat
from celery.schedules import schedule

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class Scheduler(beat.Scheduler):
    """Celery's scheduler in memory."""

    def setup_schedule(self) -> None:
        """Load the schedule, all of it due now."""
        super().setup_schedule()
        for entry in self.schedule.values():
            if isinstance(entry.schedule, schedule):
                entry.last_run_at = _LONG_AGO
