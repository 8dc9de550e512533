from django.conf import settings

from control_plane.beat import Scheduler
from control_plane.celery import app


def test_every_task_is_due_when_beat_starts_and_then_as_the_schedule_says() -> None:
    scheduler = Scheduler(app)
    assert scheduler.schedule.keys() >= app.conf.beat_schedule.keys()
    for name in app.conf.beat_schedule:
        entry = scheduler.schedule[name]
        assert entry.is_due().is_due, name
        assert not next(entry).is_due().is_due, name


def test_beat_writes_no_file() -> None:
    Scheduler(app).sync()
    assert not list(settings.HOME.glob("*beat*"))
