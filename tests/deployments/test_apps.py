"""Functions that `deployments` registers with the registry by name, imported by their first call."""

import re
from pathlib import Path

from django.utils.module_loading import import_string

from deployments import apps


def test_every_function_that_the_registry_calls_later_is_there() -> None:
    paths = re.findall(r'_imported_later\("([\w.]+)"\)', Path(apps.__file__).read_text())
    assert len(paths) == 8
    assert all(callable(import_string(path)) for path in paths)
