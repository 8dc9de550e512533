"""What every test process has before Django reads its settings: a network namespace, a secret key and a folder."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from pathlib import Path

import django
import pytest
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from tests.servers import network

network.isolate()
_HOME = Path(tempfile.mkdtemp(prefix="fairlead-tests-"))
os.environ["FAIRLEAD_HOME"] = str(_HOME)
# Named here and not in pyproject.toml: from there pytest-django would read the settings before the lines above.
os.environ["DJANGO_SETTINGS_MODULE"] = "control_plane.settings"
os.environ.setdefault("FAIRLEAD_SECRET_KEY", "only-for-tests-" + "x" * 40)
# Where it is on, gRPC starts its threads again in each process that is forked, before that runs its own program.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"
# Of several processes that share one Redis (`make test`) each has a broker of its own, as each has a database.
if "virtual_host=" in (broker := os.environ.get("FAIRLEAD_BROKER_URL", "")):
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    os.environ["FAIRLEAD_BROKER_URL"] = f"{broker.rpartition('=')[0]}={number}"
django.setup()

# What a property test finds is not to depend on how busy the machine is.
settings.register_profile("whatever the load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whatever the load")

from django.db import transaction  # noqa: E402
from django.utils import timezone  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

from accounts.auth import rate_limits  # noqa: E402
from accounts.domain.scopes import Scope  # noqa: E402
from accounts.services import token_create, user_get_or_create  # noqa: E402
from common.token_buckets import TokenBuckets  # noqa: E402
from tests.cluster._support.gateway import gateway_api  # noqa: E402
from tests.cluster._support.remains import of_the_whole_cluster  # noqa: E402
from tests.cluster.plane import ControlPlane, control_plane  # noqa: E402
from tests.servers.database import own_database  # noqa: E402
from tests.servers.parts import MissingPartError, skip_or_fail  # noqa: E402
from tests.sqlite_pass import is_of_second_pass  # noqa: E402


# Before pytest deselects by marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_of_second_pass(item.nodeid):
            item.add_marker("sqlite")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was collected out of garbage collection, which takes a tenth of the time else: it stays anyway."""
    gc.collect()
    gc.freeze()


_BLOCKED = signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Fail a test that leaves signals blocked: what later tests start would inherit that, and never end."""
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, _BLOCKED)
    assert blocked == _BLOCKED, f"signals that are still blocked: {blocked - _BLOCKED}"


@pytest.fixture(autouse=True)
def _no_requests_before() -> None:
    """Give each test full buckets, in memory: all requests of a process come from one address."""
    rate_limits.BUCKETS = TokenBuckets()


@pytest.fixture(scope="session", autouse=True)
def _home() -> Iterator[Path]:
    yield _HOME
    shutil.rmtree(_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Give this process a database of its own, in place of pytest-django's, which migrates every time."""
    with ExitStack() as stack:
        with django_db_blocker.unblock():
            stack.enter_context(own_database())
        yield
        with django_db_blocker.unblock():
            stack.close()


@pytest.fixture(scope="module")
def standing_rows(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Return a context in which a module's fixtures make rows that stand for all its tests, and go after the last.

    Each test takes back what it changed of them, since its own transaction lies within this one.
    """
    with django_db_blocker.unblock():
        whole = transaction.atomic()
        whole.__enter__()
    yield django_db_blocker.unblock
    with django_db_blocker.unblock():
        transaction.set_rollback(True)
        whole.__exit__(None, None, None)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """Give a Kubernetes control plane with the Gateway API, one for the whole run; it has no nodes of its own."""
    try:
        with control_plane() as running:
            gateway_api.install(running)
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left_on_the_plane(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where a module leaves something of the whole cluster on the control plane that it shares with others."""
    own = (item for item in request.session.items if item.path == request.path)
    if not any("plane" in getattr(item, "fixturenames", ()) for item in own):
        yield
        return
    shared: ControlPlane = request.getfixturevalue("plane")
    before = of_the_whole_cluster(shared)
    yield
    left = of_the_whole_cluster(shared) - before
    assert not left, f"{request.path.name} leaves {', '.join(sorted(left))}"


@pytest.fixture
def api(db: None) -> Callable[..., APIClient]:
    """Return a maker of API clients: `api(Scope.WRITE)` acts with a token of that scope, `api(None)` without any."""

    def make(scope: Scope | None, username: str = "alice") -> APIClient:
        client = APIClient()
        if scope is not None:
            created = token_create(
                user=user_get_or_create(username=username, now=timezone.now()),
                name=f"{username}-{scope}",
                scope=scope,
                lifetime=timedelta(hours=1),
                now=timezone.now(),
                actor="test",
            )
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {created.secret}")
        return client

    return make
