"""The ASGI application that uvicorn serves."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fairlead.settings")
django.setup(set_prefix=False)

from common.asgi import StreamingASGIHandler  # noqa: E402 - reads settings when it is made
from fairlead.sqlite_files import hold_open  # noqa: E402

application = StreamingASGIHandler()
hold_open()
