"""The controller killed before each thing it does: another one looks, and all is as if it had not been killed.

What it does is what it writes, to the database or to the API server. Each look at an object is tried again and again,
with the process killed before the first write, before the second, and so on until it gets through; after each death
another process looks until nothing is left to do. All that is to be found then is the same, and nothing is done twice.
For each change it dies before every third write, over the looks before the first, the second and the third of three in
turn; `make test-long` kills it before every one.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from clusters.models import Cluster
from common.uris import parse_prefixes
from custom_resources.models import ResourceObject
from custom_resources.turns.controller import FOLLOWS
from deployments.models import InferenceService, Revision, Rollout, RolloutPolicy
from deployments.services import rollout_abort
from deployments.services.files import file_preflight
from events.models import Event
from integrations.clusters.kubernetes import custom_resources
from integrations.clusters.kubernetes.api.resource_types import CUSTOM
from integrations.clusters.kubernetes.custom_resources import KSERVE
from integrations.clusters.local.driver import LocalDriver
from registry.models import Alias, ModelImport
from tests.custom_resources._support.object_store import ObjectStore
from tests.deployments._support.killer import Killed
from tests.deployments._support.platform import Platform

DEFINITIONS = Path(custom_resources.__file__).with_name("crds.yaml")
pytestmark = pytest.mark.django_db
MOST_LOOKS = 10
_OF_TIME = ("lastTransitionTime", "startedAt", "finishedAt", "at", "id", "rollout", "resourceVersion")
"""Fields that differ between two ways to the same state."""
_NUMBERED = re.compile(r"(imports/|rollouts/|rollout )\d+")
_NO_EFFECTS = ("SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK")
BY_HAND = {"strategy": "canary", "steps": [{"weight": 20, "pause": True}, {"weight": 50, "pause": True}]}


def spec(version: int, **more: Any) -> dict[str, Any]:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": f"models:/digits/{version}"}
    return {"predictor": {"minReplicas": 1, "model": model}, **more}


@dataclass
class World:
    """Objects in memory, services on the database, and a controller that can be killed.

    Attributes:
        every: of so many writes that follow each other, it is killed before one.
        lived_through: the kinds of writes of looks in which it was; looks that write the same are no others.
        deaths: how often it was.
        requests: verbs and resources of all writes to the API server.
    """

    platform: Platform
    cluster: Cluster
    every: int = 3
    objects: ObjectStore = field(default_factory=ObjectStore)
    lived_through: set[tuple[str, ...]] = field(default_factory=set)
    deaths: int = 0
    requests: set[str] = field(default_factory=set)

    def look(self, name: str = "digits") -> None:
        """Look at the objects of a name, with the controller killed before each write of that."""
        with self._tried():
            writes = self._follow(name)
            self._settle(name)
            end = self._state()
        kinds = tuple(kind for kind, _ in itertools.groupby(writes))
        if kinds not in self.lived_through:
            self.lived_through.add(kinds)
            numbers = range(1 + len(self.lived_through) % self.every, len(writes) + 1, self.every)
            for number in numbers:
                with self._tried():
                    self._follow(name, dies_before=number)
                    self._settle(name)
                    assert self._state() == end, f"killed before write {number}, {writes[number - 1]}"
            self.deaths += len(numbers)
        self._settle(name)

    def until(self, seen: Callable[[], object], name: str = "digits") -> None:
        for _ in range(30):
            self.look(name)
            if seen():
                return
            if InferenceService.objects.exists():
                self.platform.turn()
        pytest.fail(f"not after 30 looks: {self.objects.items}")

    def status(self, kind: str, name: str = "digits") -> dict[str, Any]:
        return dict((self.objects.get(kind, "default", name) or {}).get("status", {}))

    def _settle(self, name: str) -> None:
        before = ""
        for _ in range(MOST_LOOKS):
            if not self._follow(name):
                return
            if before == (before := self._state()):
                return
        pytest.fail(f"{name} still changes after {MOST_LOOKS} looks")

    def _follow(self, name: str, *, dies_before: int = 0) -> list[str]:
        """Look once, until the process dies before a write, and return the writes."""
        writes: list[str] = []
        is_dead = False

        def write(what: str) -> None:
            nonlocal is_dead
            is_dead = is_dead or len(writes) + 1 == dies_before
            if is_dead:
                raise Killed
            writes.append(what)

        def execute(run: Callable[..., object], sql: str, *rest: object) -> object:
            # Where a test runs in a transaction, this is the database taking back what the dead one did not commit.
            if not sql.startswith(_NO_EFFECTS):
                write(sql)
            elif is_dead and sql.startswith("SELECT"):
                raise Killed
            return run(sql, *rest)

        def request(what: str) -> None:
            write(what)
            self.requests.add(what)

        self.objects.on_write = request
        try:
            with connection.execute_wrapper(execute):
                for _, follow in FOLLOWS:
                    follow(self.cluster, self.objects, "default", name, clock=self.platform.clock)
        except Killed:
            pass
        finally:
            self.objects.on_write = lambda _what: None
        assert is_dead == bool(dies_before)
        return writes

    @contextmanager
    def _tried(self) -> Iterator[None]:
        """Forget what happens in the block."""
        kept = {name: deepcopy(getattr(self.objects, name)) for name in ("items", "events", "made", "written")}
        savepoint = transaction.savepoint()
        try:
            yield
        finally:
            transaction.savepoint_rollback(savepoint)
            for name, value in kept.items():
                setattr(self.objects, name, value)

    def _state(self) -> str:
        """Return all that is to be found, but for times and numbers of rows."""
        rows = (
            InferenceService.objects.values("name", "document", "phase", "stopped", "generation", "changes"),
            Revision.objects.values("name", "role", "replicas"),
            Rollout.objects.values("from_revision__name", "to_revision__name", "phase", "step_index"),
            RolloutPolicy.objects.values("name", "document"),
            ModelImport.objects.values("model", "uri", "status"),
            Alias.objects.values("name", "version__number"),
            Event.objects.values("kind", "message"),
            AuditEntry.objects.values("actor", "action", "target"),
            ResourceObject.objects.values(
                "kind", "name", "uid", "service__name", "digest", "acted", "problem", "retry_at", "written"
            ),
        )
        found = [list(each.order_by("pk")) for each in rows]
        events = sorted(_NUMBERED.sub(r"\1N", json.dumps(each)) for each in self.objects.events.values())
        state = json.dumps([found, _timeless(self.objects.items)], default=str)
        return "\n".join([_NUMBERED.sub(r"\1N", state), *events])


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _timeless(each) for name, each in value.items() if name not in _OF_TIME}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


@pytest.fixture
def world(platform: Platform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    driver = LocalDriver(tmp_path)  # which checks a file without any cluster
    monkeypatch.setattr(file_preflight, "driver_of", lambda _cluster: driver)
    cluster = Cluster.objects.create(name="here", kind="kubernetes", created_at=timezone.now())
    for number in (1, 2, 3):
        platform.version(number)
    return World(platform, cluster)


def lives_as_a_service(world: World) -> None:
    """Policy and service come, adopt a change, roll out, are promoted, aborted, tried again, refused, and go."""
    objects = world.objects
    objects.put("RolloutPolicy", "by-hand", BY_HAND)
    world.look("by-hand")
    objects.put("InferenceService", "digits", spec(1, rollout={"policy": "by-hand"}))
    world.until(lambda: world.status("InferenceService").get("phase") == "Ready")
    assert Revision.objects.count() == 1

    objects.put("InferenceService", "digits", spec(1, rollout={"policy": "by-hand"}), changes="adopt")
    world.look()
    world.platform.apply(policy="by-hand", replicas=2)
    world.look()
    adopted = objects.items["InferenceService", "default", "digits"]["spec"]
    assert adopted["predictor"]["minReplicas"] == 2

    objects.put("InferenceService", "digits", spec(2, rollout={"policy": "by-hand"}))
    world.until(lambda: world.status("Rollout").get("phase") == "Paused")
    objects.put("Rollout", "digits", {"action": "promote"})
    world.until(lambda: world.status("Rollout")["phase"] == "Paused" and world.status("Rollout")["step"] == 2)
    assert world.status("Rollout")["lastAction"]["message"] == ""
    objects.put("Rollout", "digits", {"action": "abort"})
    world.until(lambda: world.status("Rollout")["phase"] == "Aborted")
    objects.put("Rollout", "digits", {"action": "retry"})
    world.until(lambda: world.status("Rollout")["phase"] == "Paused")
    objects.put("Rollout", "digits", {"action": "retry"})
    world.look()
    assert world.status("Rollout")["lastAction"]["message"], "a refused action says why, once"
    assert Revision.objects.count() == 3, "one of each change"

    objects.put("InferenceService", "digits", spec(7))
    world.look()
    assert "version 7" in world.status("InferenceService")["conditions"][-1]["message"]
    objects.delete("InferenceService", "digits")
    world.until(lambda: objects.get("InferenceService", "default", "digits") is None)
    assert not InferenceService.objects.exists()
    objects.items.pop(("Rollout", "default", "digits"))  # as its owner's end removes it
    objects.delete("RolloutPolicy", "by-hand")
    world.look("by-hand")
    world.look()
    assert (ResourceObject.objects.count(), RolloutPolicy.objects.count()) == (0, 0)


def lives_as_an_object_of_kserves(world: World) -> None:
    """It is not taken while KServe's controller runs, then serves, rolls out, is refused, and goes."""
    objects = world.objects
    objects.put("RolloutPolicy", "by-hand", BY_HAND)
    world.look("by-hand")
    objects.controller = "kserve/kserve-controller-manager"
    objects.put(KSERVE, "digits", spec(1), policy="by-hand")
    world.look()
    assert [reason for reason, _ in objects.events.values()] == ["NotTaken"]
    assert not InferenceService.objects.exists()
    objects.controller = ""
    world.until(lambda: _is_ready(world.status(KSERVE)))

    objects.put(KSERVE, "digits", spec(2), policy="by-hand")
    world.until(lambda: Rollout.objects.filter(phase="Paused").exists())
    rollout_abort(rollout_id=world.platform.rollout().pk, actor="alice", now=world.platform.clock())
    world.until(lambda: world.platform.rollout().phase == "Aborted")
    assert Revision.objects.count() == 2

    objects.put(KSERVE, "digits", spec(7), policy="by-hand")
    world.look()
    assert any("version 7" in each.get("message", "") for each in world.status(KSERVE)["conditions"])
    objects.delete(KSERVE, "digits")
    world.until(lambda: objects.get(KSERVE, "default", "digits") is None)
    assert not InferenceService.objects.exists()


def _is_ready(status: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))


def lives_as_a_version(world: World) -> None:
    """A version is imported once, and gets its alias."""
    said = {"model": "digits", "uri": "http://127.0.0.1/models/v4.onnx", "aliases": ["champion"]}
    world.objects.put("ModelVersion", "digits-4", said)
    world.look("digits-4")
    assert ModelImport.objects.count() == 1
    ModelImport.objects.update(status="IMPORTED", version=world.platform.version(4))
    world.platform.clock.go_on(10)
    world.look("digits-4")
    assert world.status("ModelVersion", "digits-4")["phase"] == "Ready"
    assert Alias.objects.get().version.number == 4
    world.objects.delete("ModelVersion", "digits-4")
    world.look("digits-4")
    assert not ResourceObject.objects.exists()


@pytest.fixture(params=[3, pytest.param(1, marks=pytest.mark.long)], ids=["one of three", "each"])
def every(world: World, request: pytest.FixtureRequest) -> int:
    """Return of how many writes the controller is killed before one."""
    world.every = request.param
    return world.every


def test_wherever_the_controller_is_killed_all_is_as_if_it_had_not_been(
    world: World, every: int, settings: Settings
) -> None:
    settings.IMPORT_FROM = parse_prefixes(["http://127.0.0.1/models/"])
    lives_as_a_service(world)
    lives_as_a_version(world)
    assert world.deaths > 60 / every
    *_, role = yaml.safe_load_all(DEFINITIONS.read_text())
    may = {f"{verb} {each}" for rule in role["rules"] for each in rule["resources"] for verb in rule["verbs"]}
    reads = {f"{verb} {kind.plural}" for kind in CUSTOM for verb in ("list", "watch")}
    assert may == world.requests | reads, "the role allows what the controller does, and nothing else"


@pytest.mark.long
def test_the_same_holds_for_an_object_of_kserves(world: World, every: int) -> None:
    lives_as_an_object_of_kserves(world)
    assert world.deaths > 30 / every
    role = yaml.safe_load(DEFINITIONS.with_name("kserve_role.yaml").read_text())
    may = {f"{verb} {each}" for rule in role["rules"][:1] for each in rule["resources"] for verb in rule["verbs"]}
    assert may - {"list inferenceservices", "watch inferenceservices"} <= world.requests
