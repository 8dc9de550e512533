"""The ASGI application that uvicorn serves."""

import gc
import os
from importlib import import_module

import django

# What is imported stays: to look for garbage in it takes a sixth of the time of the imports, and then of every look.
gc.disable()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fairlead.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

from common.asgi import StreamingASGIHandler  # noqa: E402 - reads settings when it is made
from fairlead.prepared import wait_until_prepared  # noqa: E402
from fairlead.sqlite_files import hold_open  # noqa: E402

application = StreamingASGIHandler()
import_module(settings.ROOT_URLCONF)  # all views, which else the first request would wait for
gc.freeze()
gc.enable()
wait_until_prepared()
hold_open()
