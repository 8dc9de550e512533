"""Settings for every test, made before Django reads them: a secret key, and a folder for each test process."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import django
import pytest

_HOME = Path(tempfile.mkdtemp(prefix="fairlead-tests-"))
os.environ["FAIRLEAD_HOME"] = str(_HOME)
# Named here and not in pyproject.toml: from there pytest-django would read the settings before the lines above.
os.environ["DJANGO_SETTINGS_MODULE"] = "fairlead.settings"
os.environ.setdefault("FAIRLEAD_SECRET_KEY", "only-for-tests-" + "x" * 40)
django.setup()


@pytest.fixture(scope="session", autouse=True)
def _home() -> Iterator[Path]:
    yield _HOME
    shutil.rmtree(_HOME, ignore_errors=True)
