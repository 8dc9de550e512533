"""Celery application: hints from the web process, and the beat that sweeps jobs with lost hints.

Embedded mode uses kombu's file-system transport, which removes a message before it is acknowledged; that is why
every task is only a hint carrying an id and each job is found again from the database by a periodic sweep.
"""

import gc
import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_after_setup, celeryd_init, setup_logging, worker_ready
from django.conf import settings

from accounts.domain.audit_sinks import SinkName
from control_plane import broker, worker_pool
from control_plane.database.prepared import wait_until_prepared
from control_plane.database.sqlite_files import hold_open
from integrations.otlp import tracing
from serving_runtime.shared import json_log

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")

NETWORK_BROKER = {
    "socket_connect_timeout": 2.0,
    "socket_timeout": 5.0,
    "socket_keepalive": True,
    "health_check_interval": 4,
}
"""Of Redis, in seconds: by default sends wait without end, and workers for 51 s where its node is gone. Workers wait
for messages by polls of 1 s, which end sooner.
"""
broker.use()
worker_pool.use()
app = Celery("fairlead")
_JOBS_EVERY_S = 2.0
"""With the lease of jobs (`jobs.services.claim_renewal`) less than 10 s."""


def _broker_options() -> dict[str, object]:
    if not settings.BROKER_URL.startswith("filesystem:"):
        return dict(NETWORK_BROKER)
    folder = settings.HOME / "broker"
    return {
        "data_folder_in": str(folder / "queue"),
        "data_folder_out": str(folder / "queue"),
        "processed_folder": str(folder / "processed"),
        "control_folder": str(folder / "control"),
        "store_processed": False,
        "polling_interval": 0.1,
    }


def _audit_sinks() -> dict[str, dict[str, object]]:
    sinks = [name for name in SinkName if getattr(settings, f"AUDIT_{name.name}")]
    return {
        f"send-audit-{n}": {"task": "accounts.tasks.send_audit", "schedule": 5.0, "args": (n.value,)} for n in sinks
    }


def _threads() -> dict[str, int]:
    """Return the threads of each kind of long task in one worker; sweeps and ticks share those of `--concurrency`."""
    return {
        "access.tasks.forget_tokens": 1,
        "access.tasks.push_keys": 1,
        "access.tasks.refresh_issuers": 1,
        "accounts.tasks.chain_audit": 1,
        "accounts.tasks.check_identities": 1,
        "accounts.tasks.forget_answers": 1,
        "accounts.tasks.forget_sessions": 1,
        "accounts.tasks.send_audit": len(SinkName),
        "deployments.tasks.ask": 4,
        "deployments.tasks.build": 8,
        "deployments.tasks.copy_models": 1,
        "deployments.tasks.deliver": 10,
        "deployments.tasks.forget": 1,
        "deployments.tasks.forget_recordings": 1,
        "deployments.tasks.replay": 4,
        "deployments.tasks.try_version": 20,
        "deployments.tasks.tune": 8,
        "feedback.tasks.forget": 1,
        "feedback.tasks.join": 1,
        "fleet.tasks.advance": 1,
        "registry.tasks.check_version": settings.MODEL_CHECKS_AT_ONCE or 20,
        "registry.tasks.delete_unused_files": 1,
        "registry.tasks.import_model": 4,
        "usage.tasks.forget": 1,
        "usage.tasks.read_access_log": 1,
    }


@app.on_configure.connect
def configure(sender: Celery, **_: object) -> None:
    """Fill in the configuration on first use, when Django's settings can be read."""
    sender.conf.update(
        broker_url=settings.BROKER_URL,
        broker_transport_options=_broker_options(),
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=1.0,  # seconds; a hint is not worth a longer wait of the sending request
        task_ignore_result=True,
        task_serializer="json",
        task_annotations={name: {"threads": threads} for name, threads in _threads().items()},
        accept_content=["json"],
        timezone="UTC",
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        beat_scheduler="control_plane.beat:Scheduler",
        beat_schedule={
            "reconcile-services": {"task": "deployments.tasks.sweep", "schedule": settings.RECONCILE_INTERVAL_S},
            "copy-models": {"task": "deployments.tasks.copy_models", "schedule": 10.0},
            "read-access-log": {"task": "usage.tasks.read_access_log", "schedule": 10.0},
            "forget-usage": {"task": "usage.tasks.forget", "schedule": 3600.0},
            "push-keys": {"task": "access.tasks.push_keys", "schedule": 3.0},
            "forget-key-tokens": {"task": "access.tasks.forget_tokens", "schedule": 3600.0},
            "refresh-issuers": {"task": "access.tasks.refresh_issuers", "schedule": 300.0},
            "check-models": {"task": "registry.tasks.sweep", "schedule": _JOBS_EVERY_S},
            "import-models": {"task": "registry.tasks.sweep_imports", "schedule": _JOBS_EVERY_S},
            "deliver-webhooks": {"task": "deployments.tasks.sweep_deliveries", "schedule": 5.0},
            "forget-recordings": {"task": "deployments.tasks.forget_recordings", "schedule": 10.0},
            "forget-kept-answers": {"task": "feedback.tasks.forget", "schedule": 60.0},
            "replay-recordings": {"task": "deployments.tasks.sweep_replays", "schedule": _JOBS_EVERY_S},
            "build-models": {"task": "deployments.tasks.sweep_builds", "schedule": _JOBS_EVERY_S},
            "try-models": {"task": "deployments.tasks.sweep_trials", "schedule": _JOBS_EVERY_S},
            "tune-models": {"task": "deployments.tasks.sweep_tunings", "schedule": _JOBS_EVERY_S},
            "join-labels": {"task": "feedback.tasks.join", "schedule": 2.0},
            "upgrade-fleet": {"task": "fleet.tasks.advance", "schedule": 5.0},
            "chain-audit": {"task": "accounts.tasks.chain_audit", "schedule": 5.0},
            **_audit_sinks(),
            "check-identities": {"task": "accounts.tasks.check_identities", "schedule": 900.0},
            "forget-answers": {"task": "accounts.tasks.forget_answers", "schedule": 3600.0},
            "forget-sessions": {"task": "accounts.tasks.forget_sessions", "schedule": 3600.0},
            "forget-history": {"task": "deployments.tasks.forget", "schedule": 3600.0},
            "tidy-models": {"task": "registry.tasks.delete_unused_files", "schedule": 600.0},
        },
    )


@setup_logging.connect
def keep_log(**_: object) -> None:
    """Keep the log of the settings; Celery makes one of its own where nothing receives this signal."""


@celeryd_init.connect
def leave_banner_out(instance: Any, **_: object) -> None:
    """Leave out Celery's banner of many lines where lines are JSON."""
    instance.quiet = instance.quiet or settings.LOG_FORMAT == json_log.JSON


@celeryd_after_setup.connect
def wait(**_: object) -> None:
    """Start the first task, and the beat, once the database is prepared."""
    gc.freeze()  # imports are permanent, in the beat too
    wait_until_prepared()


@worker_ready.connect
def report_ready(**_: object) -> None:
    """Write this process's id for `fairlead up`, which waits for it; elsewhere the folder is missing."""
    hold_open()
    tracing.of_process.start(settings.OTLP_ENDPOINT, "fairlead-worker")
    folder = settings.HOME / "run"
    if folder.is_dir():
        (folder / "worker.ready").write_text(f"{os.getpid()}\n")


@app.on_after_finalize.connect
def connect_signals(**_: object) -> None:
    """Connect metrics and request ids, in every process that uses the application."""
    from control_plane.monitoring import telemetry, tracing  # noqa: F401, PLC0415 - register themselves


app.autodiscover_tasks()
