"""Defaults of new installations, and that an upgrade of one changes nothing that it was not asked for."""

import base64
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kombu import Connection
from kombu.exceptions import OperationalError
from redis import AuthenticationError, Redis

from tests.charts.chart import CHART, NAMESPACE, RELEASE, Json, chart_where, objects, pods, rendered, values
from tests.servers.parts import free_port
from tests.servers.redis import server_program

DIGEST = "sha256:" + "1" * 64
BEFORE = {f"Secret/{RELEASE}": {"data": {"secret-key": "a2V5", "postgresql-password": "cGFzcw=="}}}
"""What an installation of the chart before has."""
GIVEN: Json = {"existingSecret": "servers", "postgresql": {"enabled": False}, "redis": {"enabled": True}}


def found_of(made: list[Json]) -> Json:
    """Return objects as `chart_where` takes them."""
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in made}


def env_of(made: list[Json], of: str) -> dict[str, str]:
    (spec,) = (spec for name, spec in pods(made) if name == f"{RELEASE}-{of}")
    return {each["name"]: each.get("value", "") for each in spec["containers"][0]["env"]}


def empty_of(made: list[Json]) -> list[Json]:
    return [volume["emptyDir"] for _, spec in pods(made) for volume in spec["volumes"] if "emptyDir" in volume]


def redis_of(made: list[Json]) -> Json:
    (spec,) = (spec for name, spec in pods(made) if name == f"{RELEASE}-redis")
    return spec


def secret_of(made: list[Json]) -> dict[str, str]:
    data = found_of(made)[f"Secret/{RELEASE}"]["data"]
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def test_a_new_installation_is_closed() -> None:
    made = objects({})
    assert env_of(made, "web")["FAIRLEAD_METRICS_ACCESS"] == "token"
    for of in ("web", "worker"):
        assert env_of(made, of)["FAIRLEAD_ALLOWED_REGISTRIES"] == "docker.io/fairlead"
    assert all(each.get("sizeLimit") for each in empty_of(made))
    assert secret_of(made)["redis.conf"].startswith("requirepass ")


def test_an_upgrade_of_one_from_before_changes_none_of_it(tmp_path: Path) -> None:
    made = objects({}, is_upgrade=True, chart_folder=chart_where(tmp_path, BEFORE))
    for of in ("web", "worker"):
        assert not {"FAIRLEAD_METRICS_ACCESS", "FAIRLEAD_ALLOWED_REGISTRIES"} & env_of(made, of).keys()
    assert [each for each in empty_of(made) if each] == []
    assert len(empty_of(made)) >= 5
    assert secret_of(made)["broker-url"] == f"redis://{RELEASE}-redis:6379/0"
    assert "redis.conf" not in secret_of(made)
    assert f"ConfigMap/{RELEASE}-defaults" not in found_of(made)
    assert "fairlead/redis-password" not in "".join(rendered({}, is_upgrade=True).values())


def test_an_upgrade_of_a_new_one_keeps_what_it_has_and_makes_up_nothing(tmp_path: Path) -> None:
    first = objects({})
    marker = found_of(first)[f"ConfigMap/{RELEASE}-defaults"]
    marker["data"]["chart"] = "0.2.0-of-then"
    second = objects({}, is_upgrade=True, chart_folder=chart_where(tmp_path, found_of(first)))
    assert secret_of(second) == secret_of(first)
    assert found_of(second)[f"ConfigMap/{RELEASE}-defaults"]["data"] == marker["data"]
    assert env_of(second, "web") == env_of(first, "web")
    assert empty_of(second) == empty_of(first)
    for of in ("redis", "web", "worker", "beat", "watcher"):
        name = f"Deployment/{RELEASE}-{of}"
        assert found_of(second)[name]["spec"] == found_of(first)[name]["spec"]


def test_an_existing_one_gets_the_defaults_once_asked_and_its_secrets_stay(tmp_path: Path) -> None:
    asked = {"defaults": "current", "redis": {"password": "required"}}
    made = objects(asked, is_upgrade=True, chart_folder=chart_where(tmp_path, BEFORE))
    assert env_of(made, "web")["FAIRLEAD_METRICS_ACCESS"] == "token"
    assert secret_of(made)["secret-key"] == "key"
    assert secret_of(made)["broker-url"].startswith("redis://default:")
    for of in ("web", "worker", "beat", "watcher"):
        pod = found_of(made)[f"Deployment/{RELEASE}-{of}"]["spec"]["template"]["metadata"]
        assert pod["annotations"] == {"fairlead/redis-password": "required"}, "so that its pods read the new address"


def test_a_new_installation_may_have_the_defaults_of_before() -> None:
    made = objects({"defaults": "compatible"})
    assert "FAIRLEAD_METRICS_ACCESS" not in env_of(made, "web")
    assert "redis.conf" not in secret_of(made)
    assert f"ConfigMap/{RELEASE}-defaults" not in found_of(made)


def test_a_setting_wins_over_a_default() -> None:
    made = objects({"settings": {"FAIRLEAD_METRICS_ACCESS": "anyone"}, "allowedRegistries": []})
    assert env_of(made, "web")["FAIRLEAD_METRICS_ACCESS"] == "anyone"
    assert "FAIRLEAD_ALLOWED_REGISTRIES" not in env_of(made, "web")


@pytest.mark.parametrize(
    ("repository", "allowed"),
    [
        ("registry.example.com/control-plane", "registry.example.com"),
        ("registry.example.com:5000/ml/fairlead/control-plane", "registry.example.com:5000/ml/fairlead"),
        ("mirror/control-plane", "docker.io/mirror"),
        ("control-plane", "docker.io/library"),
    ],
)
def test_images_of_services_come_from_where_fairleads_own_come_from(repository: str, allowed: str) -> None:
    given = {"image": {"repository": repository}, "cluster": {"runtimeImage": {"repository": repository}}}
    assert env_of(objects(given), "web")["FAIRLEAD_ALLOWED_REGISTRIES"] == allowed


@pytest.mark.parametrize(
    ("there", "password", "how"),
    [
        pytest.param({"redis.conf": "eA=="}, "auto", "required", id="a Secret with a password"),
        pytest.param({"broker-url": "eA=="}, "auto", "", id="a Secret without one"),
        pytest.param({}, "auto", "optional", id="a Secret that cannot be read, as for helm template"),
        pytest.param({"broker-url": "eA=="}, "required", "required", id="a password that is asked for"),
        pytest.param({"redis.conf": "eA=="}, "none", "", id="none"),
    ],
)
def test_a_given_secret_says_whether_redis_has_a_password(
    tmp_path: Path, there: dict[str, str], password: str, how: str
) -> None:
    chart = chart_where(tmp_path, {"Secret/servers": {"data": there}} if there else {})
    given = {**GIVEN, "redis": {"enabled": True, "password": password}}
    spec = redis_of(objects(given, is_upgrade=True, chart_folder=chart))
    command = spec["containers"][0]["command"]
    secrets = [each["secret"] for each in spec["volumes"] if "secret" in each]
    assert [each.get("optional", False) for each in secrets] == {"": [], "required": [False], "optional": [True]}[how]
    assert [word for word in command if word.endswith(".conf")] == (
        {"": [], "required": ["/etc/fairlead/redis/redis.conf"], "optional": ["/etc/fairlead/redis/*.conf"]}[how]
    )


@pytest.fixture
def run(tmp_path: Path) -> Iterator["Runner"]:
    runner = Runner(tmp_path)
    yield runner
    runner.stop()


class Runner:
    """Redis with the command of its container, on a free port, with the Secret's keys as files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, made: list[Json], keys: dict[str, str]) -> int:
        mounted = self._folder / "mounted"
        mounted.mkdir()
        for name, text in keys.items():
            (mounted / name).write_text(text)
        port = free_port()
        here = {"6379": str(port), "/data": str(self._folder), "redis-server": server_program()}
        command = redis_of(made)["containers"][0]["command"]
        words = [here.get(word, word.replace("/etc/fairlead/redis", str(mounted))) for word in command]
        self._process = subprocess.Popen([*words, "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL)
        return port

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def answer(url: str) -> str:
    """Return what the broker at the address says to the application's own library; waits for its start."""
    deadline = time.monotonic() + 10
    while True:
        try:
            with Connection(url, transport_options={"max_retries": 1}) as connection:
                connection.ensure_connection(max_retries=1, timeout=1)
                with connection.SimpleQueue("q") as queue:
                    queue.put("task")
                    return str(queue.get(timeout=5).payload)
        except OperationalError as error:
            if "refused" not in str(error) or time.monotonic() > deadline:
                return str(error)
            time.sleep(0.02)


@pytest.mark.parametrize("kind", ["own Secret", "given Secret", "given Secret that cannot be read"])
def test_redis_refuses_who_has_no_password_and_takes_the_address_of_the_secret(
    run: Runner, tmp_path: Path, kind: str
) -> None:
    made = objects({})
    keys = secret_of(made)
    if kind != "own Secret":
        there = {} if kind.endswith("read") else {"Secret/servers": {"data": {"redis.conf": "eA=="}}}
        made = objects(GIVEN, chart_folder=chart_where(tmp_path, there))
    port = run.start(made, {"redis.conf": keys["redis.conf"]})
    url = keys["broker-url"].replace(f"{RELEASE}-redis:6379", f"127.0.0.1:{port}")
    assert answer(url) == "task"
    password = keys["redis.conf"].split()[1]
    assert len(password) == 32
    for refused in (f"redis://127.0.0.1:{port}/0", url.replace(password, "guess")):
        with Redis.from_url(refused) as client, pytest.raises(AuthenticationError):
            client.ping()


@pytest.mark.parametrize("given", [{"redis": {"password": "none"}}, GIVEN], ids=["none", "a Secret without the key"])
def test_the_new_address_works_with_a_redis_that_has_no_password_yet(run: Runner, tmp_path: Path, given: Json) -> None:
    """While an existing installation gets its password, new pods may come before the new Redis."""
    port = run.start(objects(given, chart_folder=chart_where(tmp_path, {})), {})
    url = secret_of(objects({}))["broker-url"].replace(f"{RELEASE}-redis:6379", f"127.0.0.1:{port}")
    assert answer(url) == "task"


def test_every_image_can_be_pulled_by_its_digest() -> None:
    given = values("trial")
    for of in ("postgresql", "redis"):
        given.setdefault(of, {})["image"] = {"digest": DIGEST}
    given |= {"image": {"digest": DIGEST}, "cluster": {"runtimeImage": {"digest": DIGEST}}}
    made = objects(given)
    used = {each["image"] for _, spec in pods(made) for each in (*spec.get("initContainers", ()), *spec["containers"])}
    (file,) = (each["data"]["cluster.yaml"] for each in made if "cluster.yaml" in each.get("data", {}))
    used.add(yaml.safe_load(file)["runtimeImage"])
    names = ("fairlead/control-plane", "fairlead/serving-runtime", "postgres", "redis")
    assert used == {f"{name}@{DIGEST}" for name in names}


def test_a_release_pins_its_images_and_no_others(tmp_path: Path) -> None:
    chart = chart_where(tmp_path, {})
    (chart / "files" / "digests.yaml").write_text(f"fairlead/control-plane:0.1.0: {DIGEST}\nredis:7: {DIGEST}\n")
    (web,) = (spec for name, spec in pods(objects({}, chart_folder=chart)) if name == f"{RELEASE}-web")
    assert web["containers"][0]["image"] == f"fairlead/control-plane@{DIGEST}"
    other = {"image": {"tag": "0.1.1"}, "redis": {"image": {"repository": "mirror.example.com/redis"}}}
    made = objects(other, chart_folder=chart)
    assert redis_of(made)["containers"][0]["image"] == "mirror.example.com/redis:7"
    (web,) = (spec for name, spec in pods(made) if name == f"{RELEASE}-web")
    assert web["containers"][0]["image"] == "fairlead/control-plane:0.1.1"


def test_this_tree_pins_nothing_that_no_release_measured() -> None:
    assert yaml.safe_load((CHART / "files" / "digests.yaml").read_text()) == {}


def cached(made: list[Json]) -> tuple[Json, list[str]]:
    """Return the cache in the cluster file, and the namespaces with a claim for it."""
    file = yaml.safe_load(found_of(made)[f"ConfigMap/{RELEASE}-cluster"]["data"]["cluster.yaml"])
    claims = [each["metadata"] for each in made if each["kind"] == "PersistentVolumeClaim"]
    named = [each["namespace"] for each in claims if each["name"] == f"{RELEASE}-model-cache"]
    return file["artifacts"].get("cache", {}), named


def test_replicas_of_a_new_installation_start_without_the_control_plane(tmp_path: Path) -> None:
    whole = {"claim": f"{RELEASE}-model-cache", "size": "50Gi"}
    first = objects({})
    assert cached(first) == (whole, [f"{RELEASE}-models"])
    later = objects({}, is_upgrade=True, chart_folder=chart_where(tmp_path, found_of(first)))
    assert cached(later)[0] == whole, "an upgrade keeps it"


def test_storage_for_one_node_has_a_cache_of_models_only_by_the_values() -> None:
    once = {"persistence": {"artifacts": {"accessMode": "ReadWriteOnce"}}}
    assert cached(objects(once)) == ({}, [])
    assert cached(objects({**once, "cluster": {"modelCache": "7Gi"}}))[0]["size"] == "7Gi"


def test_an_upgrade_adds_a_cache_of_models_only_where_the_values_give_it_room(tmp_path: Path) -> None:
    chart = chart_where(tmp_path, BEFORE)
    assert cached(objects({}, is_upgrade=True, chart_folder=chart)) == ({}, [])
    asked = objects({"defaults": "current"}, is_upgrade=True, chart_folder=chart)
    assert cached(asked) == ({}, []), "it would replace the pods of all services"
    room = {"cluster": {"modelCache": "7Gi", "namespaces": ["vision", "text"]}}
    found, namespaces = cached(objects(room, is_upgrade=True, chart_folder=chart))
    assert (found["size"], namespaces) == ("7Gi", ["vision", "text"])


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"modelCache": "none"}, id="none is asked for"),
        pytest.param({"file": {"artifacts": {"from": "claim"}}}, id="pods copy from the control plane's claim"),
        pytest.param({"file": {"artifacts": {"cache": {"claim": "own", "size": "1Gi"}}}}, id="one of the operator's"),
    ],
)
def test_a_new_installation_may_do_without_the_charts_cache(given: Json) -> None:
    found, namespaces = cached(objects({"cluster": given}))
    assert found.get("claim") != f"{RELEASE}-model-cache"
    assert namespaces == []


def test_names_are_of_the_namespace() -> None:
    assert found_of(objects({}))[f"ConfigMap/{RELEASE}-defaults"]["metadata"]["namespace"] == NAMESPACE
