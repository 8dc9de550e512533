"""`manage.py collect_usage`: the process that counts usage of services on Kubernetes; the chart runs it.

Several may run at once: each stores what it was sent.
"""

import os
import signal
import socket
import threading
import uuid
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections
from django.utils import timezone

_EVERY_S = 1.0
_LEAST_TOKEN = 32


class Command(BaseCommand):
    """Counts until terminated."""

    help = "Counts the usage that gateways on Kubernetes export, and stores it each second."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run until SIGTERM or SIGINT; what was taken is stored before the end."""
        from control_plane.monitoring.telemetry import serve  # noqa: PLC0415 - as watch_clusters does
        from integrations.otlp.logs_receiver import LogsReceiver  # noqa: PLC0415 - gRPC, which other commands have not
        from usage.services.collector import UsageCollector  # noqa: PLC0415

        token = settings.USAGE_COLLECTOR_TOKEN
        if len(token) < _LEAST_TOKEN:
            raise CommandError(
                f"FAIRLEAD_USAGE_COLLECTOR_TOKEN has {len(token)} characters, fewer than {_LEAST_TOKEN}; set it, or "
                "FAIRLEAD_USAGE_COLLECTOR_TOKEN_FILE to a file with the text that gateways send"
            )
        collector = UsageCollector(f"{socket.gethostname()[:60]}:{os.getpid()}:{uuid.uuid4().hex[:16]}")
        try:
            receiver = LogsReceiver(
                settings.USAGE_COLLECTOR_ADDRESS,
                token,
                lambda records: collector.take(records, timezone.now()),
                settings.USAGE_COLLECTOR_TLS_FOLDER,
            )
        except OSError as error:
            raise CommandError(f"usage cannot be collected: {error}") from error
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        receiver.start()
        serve(settings.USAGE_COLLECTOR_METRICS_ADDRESS)
        while not stopped.wait(_EVERY_S):
            _store(collector)
        receiver.close()
        if not _store(collector):
            raise CommandError("the last records could not be stored: the database is unavailable")


def _store(collector: Any) -> bool:
    close_old_connections()
    return bool(collector.store(timezone.now()))
