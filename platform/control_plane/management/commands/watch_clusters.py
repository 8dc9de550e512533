"""`manage.py watch_clusters`: the process that watches Kubernetes clusters, one for each control plane.

Two of them at once do no harm: each turns the reconciler to the same services, whose leases admit one tick at a time.
"""

import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from clusters.models import KUBERNETES, Cluster


class Command(BaseCommand):
    """Watches until terminated."""

    help = "Watches Kubernetes clusters, and triggers the worker at once for services with changes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only prints whether there is a cluster to watch")

    def handle(self, *_args: Any, check: bool, **_options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        if check:
            self.stdout.write("yes" if Cluster.objects.filter(kind=KUBERNETES).exists() else "no")
            return
        from clusters.services.connection import access_to  # noqa: PLC0415 - half a second of imports, which --check has not
        from clusters.services.watch import Follower  # noqa: PLC0415
        from control_plane.monitoring.telemetry import serve  # noqa: PLC0415

        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        serve(settings.WATCHER_METRICS_ADDRESS)
        follower = Follower(access_to, timezone.now, time.monotonic)
        try:
            follower.run(stopped)
        finally:
            follower.close()
