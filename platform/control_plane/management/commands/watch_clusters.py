"""`manage.py watch_clusters`: the process that watches Kubernetes clusters, and turns to their services.

Several share the clusters: each watches its own alone, and the others go on with them where it ends.
"""

import gc
import signal
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from clusters.models import KUBERNETES, Cluster

_COLLECTED = (50_000, 20, 100)
"""Thresholds of the garbage collector. With Python's own, a tenth of the processor time went into collections of caches
that stay, and all threads waited up to 0.6 s for one: objects of turns that wait look old."""


class Command(BaseCommand):
    """Watches until terminated."""

    help = "Watches Kubernetes clusters, and brings their services to their desired state."

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
        from custom_resources.turns.controller import ObjectController  # noqa: PLC0415
        from deployments.turns.controller import Controller  # noqa: PLC0415

        gc.freeze()  # imports are permanent
        gc.set_threshold(*_COLLECTED)
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        serve(settings.WATCHER_METRICS_ADDRESS)
        controller = Controller(settings.TURNS_AT_ONCE)
        follower = Follower(access_to, timezone.now, time.monotonic, controller.hint, controller.clusters)

        objects = ObjectController(controller.clusters)

        def until_stopped(run: Callable[[threading.Event], None]) -> None:
            try:
                run(stopped)
            finally:
                stopped.set()  # where it failed, the process ends and is started again

        others = [
            threading.Thread(target=until_stopped, args=(each.run,), name=name)
            for name, each in (("follower", follower), ("objects", objects))
        ]
        for thread in others:
            thread.start()
        try:
            controller.run(stopped)
        finally:
            stopped.set()
            for thread in others:
                thread.join()
            follower.close()
