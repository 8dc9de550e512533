"""`manage.py wake_services`: the process that wakes services on the Kubernetes cluster whose pod it is.

It needs neither database nor broker. Several may run at once: each keeps its own share of what waits.
"""

import asyncio
import logging
import signal
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from common.errors import InvalidInput

logger = logging.getLogger(__name__)
_GRACE_S = 62.0
"""Longer than a request waits at most."""
_KNOWN_WITHIN_S, _EVERY_S = 30.0, 0.1


class Command(BaseCommand):
    """Wakes services until terminated."""

    help = "Starts the first replica of services that are asleep on Kubernetes, for Envoys that hold their requests."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--kubeconfig", type=Path, help="instead of the pod's service account")

    def handle(self, *_args: Any, kubeconfig: Path | None, **_options: Any) -> None:
        """Run until SIGTERM or SIGINT; requests that wait then are still answered."""
        try:
            asyncio.run(_serve(kubeconfig))
        except (OSError, InvalidInput) as error:
            raise CommandError(f"services cannot be woken: {error}") from error


async def _serve(kubeconfig: Path | None) -> None:
    from control_plane.monitoring.telemetry import serve  # noqa: PLC0415
    from integrations.clusters.kubernetes.access import AsPod, KubeconfigFile  # noqa: PLC0415 - as watch_clusters does
    from integrations.clusters.kubernetes.api.client import Api  # noqa: PLC0415
    from integrations.clusters.kubernetes.waker.replicas import WATCHED, Replicas  # noqa: PLC0415
    from integrations.clusters.kubernetes.waker.server import WakeServer  # noqa: PLC0415
    from integrations.clusters.kubernetes.waker.waker import Waker  # noqa: PLC0415
    from integrations.clusters.kubernetes.watches import Cache, Watcher  # noqa: PLC0415
    from integrations.clusters.kubernetes.watches.cache import EVERYWHERE  # noqa: PLC0415

    access = AsPod() if kubeconfig is None else KubeconfigFile(kubeconfig)
    cache, stopped = Cache(), asyncio.Event()
    waker = Waker(Replicas(Api(access), cache))
    server = WakeServer(settings.WAKER_ADDRESS, waker)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    watcher = Watcher(access, cache, waker.changed, WATCHED)
    namespaces = settings.WAKER_NAMESPACES or [EVERYWHERE]
    watcher.follow(namespaces)

    def is_known() -> bool:
        return all(cache.covers(kind, each) for kind in WATCHED for each in namespaces)

    try:
        if not await _until(is_known, stopped):
            problems = "; ".join(watcher.standing().problems) or "the API server has not answered yet"
            logger.warning("some services cannot be woken so far: %s", problems)
        await server.start()
        serve(settings.WAKER_METRICS_ADDRESS)
        logger.info("services are woken by calls at %s:%s", settings.WAKER_ADDRESS[0], server.port)
        await stopped.wait()
        await server.stop(_GRACE_S)
    finally:
        await asyncio.to_thread(watcher.close)


async def _until(is_known: Callable[[], bool], stopped: asyncio.Event) -> bool:
    """Wait until the watches know all services; returns False where they do not in time, or the process is to end."""
    deadline = time.monotonic() + _KNOWN_WITHIN_S
    while not is_known():
        if stopped.is_set() or time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_EVERY_S)
    return True
