"""ASGI application, served by uvicorn."""

import gc
import os
from importlib import import_module

import django

# Imports are permanent: scanning them for garbage takes a sixth of the imports' time, and then of every collection.
gc.disable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

from control_plane import health  # noqa: E402
from control_plane.database.prepared import wait_until_prepared  # noqa: E402
from control_plane.database.sqlite_files import hold_open  # noqa: E402
from control_plane.handler import ControlPlaneHandler  # noqa: E402 - reads settings when it is made
from control_plane.monitoring.telemetry import serve  # noqa: E402
from integrations.otlp import tracing  # noqa: E402

application = ControlPlaneHandler()
import_module(settings.ROOT_URLCONF)  # all views, which otherwise the first request would wait for
gc.freeze()
gc.enable()
wait_until_prepared()
hold_open()
serve(settings.WEB_METRICS_ADDRESS, health.OWN_PORT)
tracing.of_process.start(settings.OTLP_ENDPOINT, "fairlead-web")
