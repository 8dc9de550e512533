"""pytest plugin: begins with the files that take minutes, most of which they wait, so that others compute beside them.

Those that share a platform follow each other.

`pytest -p tests.suites.order`.
"""

import pytest

LONGEST = (
    "tests/cluster/test_chart.py",
    "tests/deployments/reconcile/test_killed_anywhere.py",
    "tests/control_plane/test_pages_at_scale.py",
    "tests/e2e/",
    "tests/runbooks/",
    "tests/examples/",
    "tests/control_plane/test_web_is_replaced.py",
)
"""Beginnings of paths; `python -m tests.suites.table` says what else takes long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move what takes long to the front; the rest stays as it was collected."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, bool]:
    place = next((n for n, path in enumerate(LONGEST) if item.nodeid.startswith(path)), len(LONGEST))
    return place, "shared_platforms" not in getattr(item, "fixturenames", ())
