"""What reaches a test without an import, in tables. A changed file that neither they nor the graph know: every test."""

import tomllib
from fnmatch import fnmatchcase

EVERYTHING = {
    "requirements/base.txt": "the locked dependencies are those of every test",
    "requirements/dev.txt": "the locked dependencies are those of every test",
    "platform/*/apps.py": "Django loads it for every test",
    "platform/control_plane/env.py": "the settings of every test are read with it",
}
"""Files that every test stands on, with the reason."""

BESIDE: dict[str, tuple[str, ...]] = {
    "charts/*": (
        "tests/charts/*",
        "tests/releases/*",
        "tests/runbooks/test_install_page.py",
        "tests/cluster/test_chart*.py",
        "tests/cluster/test_helm.py",
        "tests/cluster/test_install_page.py",
        "tests/runbooks/test_on_a_cluster.py",
        "tests/nets/test_deployed_names.py",
    ),
    "charts/fairlead/files/argo-cd/*": ("tests/custom_resources/views/test_gitops.py",),
    "charts/fairlead/files/alerts.yaml": ("tests/e2e/test_objectives.py",),
    "kustomize/*": (
        "tests/charts/*",
        "tests/cluster/test_kustomize*.py",
        "tests/nets/test_deployed_names.py",
        "tests/releases/*",
    ),
    "docker/*": ("tests/docker/*", "tests/nets/test_deployed_names.py"),
    "docs/*": (
        "tests/control_plane/test_docs.py",
        "tests/fairlead_cli/test_docs.py",
        "tests/serving_runtime/test_docs.py",
        "tests/nets/test_deployed_names.py",
    ),
    "docs/reference/alerts.md": ("tests/charts/test_alerts.py",),
    "docs/runbooks/*": ("tests/runbooks/*",),
    "docs/how-to/*": ("tests/docker/test_how_to.py",),
    "docs/how-to/install-on-kubernetes.md": (
        "tests/cluster/test_install_page.py",
        "tests/runbooks/test_install_page.py",
    ),
    "docs/how-to/gitops-*": ("tests/charts/test_gitops_pages.py",),
    "examples/*": ("tests/examples/*", "tests/nets/test_deployed_names.py"),
    "benchmarks/*": ("tests/benchmarks/*",),
    "frontend/src/*": ("tests/browser/*",),
    "frontend/styles/*": ("tests/browser/*",),
    "frontend/templates/*": ("tests/test_copy.py", "tests/nets/test_python_paths.py"),
    "frontend/static/*": ("tests/browser/*",),
    "frontend/*.json": ("tests/browser/*",),
    "frontend/build.*": ("tests/browser/*",),
    "frontend/.npmrc": ("tests/browser/*",),
    "tests/*test_*.py": ("tests/test_copy.py", "tests/test_imports.py"),
    "platform/*/migrations/*": ("tests/control_plane/test_migrations.py", "tests/releases/*"),
    "serving_runtime/proto/*": ("tests/serving_runtime/test_proto.py",),
    "requirements/images/*": ("tests/docker/*", "tests/releases/*"),
    "requirements/clients/*": (
        "tests/serving_runtime/server/test_clients.py",
        "tests/serving_runtime/server/test_kserve_client.py",
    ),
    "requirements/lock.sh": ("tests/docker/test_locks.py",),
    "requirements/more.py": ("tests/docker/test_more.py", "tests/docker/test_locks.py"),
    "requirements/node.*": ("tests/docker/test_locks.py",),
    ".dockerignore": ("tests/docker/*",),
    "README.md": (
        "tests/control_plane/test_docs.py",
        "tests/fairlead_cli/test_docs.py",
        "tests/nets/test_deployed_names.py",
    ),
    "CONTRIBUTING.md": ("tests/control_plane/test_docs.py", "tests/fairlead_cli/test_docs.py"),
    "CHANGELOG.md": (),
    "LICENSE": (),
    "SECURITY.md": ("tests/control_plane/test_docs.py", "tests/nets/test_deployed_names.py"),
    ".gitignore": (),
    "Makefile": ("tests/docker/*", "tests/releases/*"),
    "manage.py": ("tests/control_plane/*",),
    ".ci/*": (),
}
"""Which tests a file has beside those that the graph finds; a file that one of these patterns matches is known."""

READ_ALL_SOURCES = "tests/nets/*"
SOURCES = ("platform/*.py", "serving_runtime/*.py")
"""These tests read the text of all sources: any change of one chooses them, and makes no file known."""

OF_EVERY_ROUTE = ("AUTHENTICATION_BACKENDS", "LOGGING", "MIDDLEWARE", "REST_FRAMEWORK", "TEMPLATES")
"""The settings that each request passes through."""

BY_NAME = {"get_asgi_application": ("platform/control_plane/urls.py",)}
"""What a name of Django's leads to in our code."""

NEVER_ASK = (
    "tests/fairlead_cli/",
    "tests/serving_runtime/",
    "tests/integrations/",
    "tests/benchmarks/",
    "tests/cluster/",
    "tests/affected/",
)
"""Tests that serve or ask other addresses than the control plane's."""

WHOLE_PLATFORM = (
    "tests/e2e/",
    "tests/browser/whole/",
    "tests/cluster/",
    "tests/runbooks/",
    "tests/docker/",
    "tests/deployments/reconcile/test_killed_anywhere.py",
    "tests/deployments/reconcile/test_random_walks.py",
)
"""Tests that start the platform as processes or walk through all of it for minutes: for nearly every change, far."""

PROVED_BY_CHECK = {"ruff", "mypy", "django-stubs", "importlinter"}
"""Tables of pyproject.toml, below `tool`, which `make check` reads; of tests, `tests/nets/contracts` alone."""


matches = fnmatchcase


def everything(path: str) -> str | None:
    """Return why a change of the file can affect every test, if it can."""
    return next((reason for pattern, reason in EVERYTHING.items() if fnmatchcase(path, pattern)), None)


def beside(path: str) -> tuple[str, ...] | None:
    """Return patterns of the tests that the tables give to a file, or None where they do not know it."""
    found = [tests for pattern, tests in BESIDE.items() if fnmatchcase(path, pattern)]
    return tuple(dict.fromkeys(test for tests in found for test in tests)) if found else None


def is_source(path: str) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in SOURCES)


def whole_platform(path: str) -> bool:
    return path.startswith(WHOLE_PLATFORM)


def of_project(old: str, new: str) -> bool:
    """Say whether two versions of pyproject.toml differ in what tests see."""
    return _seen(old) != _seen(new)


def _seen(text: str) -> dict[str, object]:
    document = tomllib.loads(text)
    tools = document.pop("tool", {})
    return {**document, "tool": {name: table for name, table in tools.items() if name not in PROVED_BY_CHECK}}
