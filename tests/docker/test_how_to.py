"""`docs/how-to/run-with-compose.md`, followed to the letter on a Docker engine."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.cluster import binaries
from tests.docker._support.built import MORE, ROOT
from tests.docker._support.compose_file import FILE, STAY_UP
from tests.docker.containers import needs
from tests.docker.engine import Engine, base
from tests.e2e.harness import until
from tests.servers.parts import MissingPartError, free_port, skip_or_fail

pytestmark = pytest.mark.images

HOW_TO = ROOT / "docs" / "how-to" / "run-with-compose.md"
STAND_IN = "fairlead-test-postgres"
PORTS = {"8080": "FAIRLEAD_PORT", "8090": "FAIRLEAD_GATEWAY_PORT"}
METRICS_PORTS = ("FAIRLEAD_WORKER_METRICS_PORT", "FAIRLEAD_BEAT_METRICS_PORT")
COMMAND = "docker compose --env-file fairlead.env"
INFER = "/serving/default/digits/v2/models/digits/infer"


def blocks(heading: str) -> list[str]:
    """Return the shell blocks of the page's section of that heading, as they stand."""
    section = HOW_TO.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^( *)```sh\n(.*?)^\1```$", section, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


class Shell:
    """A person's shell beside a copy of `docker/`, which keeps its folder and variables from block to block."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self.ports = {told: str(free_port()) for told in PORTS}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['8080']}"

    @property
    def gateway(self) -> str:
        return f"http://127.0.0.1:{self.ports['8090']}"

    def run(self, block: str) -> str:
        """Return what a block printed; it must succeed to its last line. Only the ports are others."""
        for told, own in self.ports.items():
            block = block.replace(f":{told}", f":{own}")
        state = self._folder / "state"
        script = f"{block}\nexport OLDPWD; {{ export -p; echo cd $PWD; }} > {state}"
        if state.exists():
            script = f". {state}\n{script}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._folder,
            env=self._environment | {PORTS[told]: own for told, own in self.ports.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}\n{self.logs()}"
        return done.stdout

    def fairlead(self, *arguments: str) -> Any:
        """Return what a command of the command line printed as JSON."""
        return json.loads(self.run(f"{COMMAND} run --rm fairlead {' '.join(arguments)} --output json"))

    def logs(self) -> str:
        """Return the end of what every container said."""
        command = [*COMMAND.split(), "logs", "--no-color", "--tail", "20"]
        folder = self._folder / "docker"
        done = subprocess.run(
            command, cwd=folder, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return (done.stdout + done.stderr).decode(errors="replace")[-8000:]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's models and its held-out images."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, "-m", "fairlead_cli.demo.train", str(folder)], check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def compose(docker: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which `docker compose` works; a Docker without Compose gets one that is built."""
    if docker.attempt("compose", "version").returncode == 0:
        return docker.environment
    plugins = tmp_path_factory.mktemp("docker-config") / "cli-plugins"
    plugins.mkdir()
    try:
        (plugins / "docker-compose").symlink_to(binaries.compose())
    except MissingPartError as missing:
        skip_or_fail(missing)
    return docker.environment | {"DOCKER_CONFIG": str(plugins.parent)}


@pytest.fixture(scope="module")
def shell(
    docker: Engine, compose: dict[str, str], models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    """Give a shell beside the files that the page speaks of; what it started is removed at the end."""
    needs("one-machine")
    if MORE:
        pytest.skip("the page is about the image as it is; leave MORE out")
    here = Path(__file__).parent / "postgres"
    build = ["build", "--network=host", f"--build-arg=BASE={base(docker)}", f"--tag={STAND_IN}", str(here)]
    docker.docker(*build, timeout_s=900)
    folder = tmp_path_factory.mktemp("compose")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)  # the command line reads the folder without rights
    files = folder / "docker"
    files.mkdir()
    shutil.copy(FILE, files)
    for version in (1, 2):
        shutil.copy(models / f"v{version}.onnx", files / f"digits-{version}.onnx")
    (files / "request.json").write_text(json.dumps(request_to(models)))
    told = {name: str(free_port()) for name in METRICS_PORTS}
    told |= {
        "POSTGRES_IMAGE": STAND_IN,
        "REDIS_IMAGE": STAND_IN,
        "COMPOSE_PROJECT_NAME": f"fairlead-test-{free_port()}",
    }
    made = Shell(folder, compose | told)
    try:
        yield made
    finally:
        made.run(f"{COMMAND} down --volumes --timeout 30")


@pytest.fixture
def body(models: Path) -> dict[str, Any]:
    """Return a V2 request with a held-out image."""
    return request_to(models)


def request_to(models: Path) -> dict[str, Any]:
    """Return a V2 request with a held-out image."""
    image = np.load(models / "held-out.npz")["images"][:1].astype("f4")
    tensor = {"name": "pixels", "datatype": "FP32", "shape": list(image.shape), "data": image.flatten().tolist()}
    return {"inputs": [tensor]}


@contextmanager
def traffic(shell: Shell, body: dict[str, Any]) -> Iterator[Counter[str]]:
    """Send requests while the block runs; counts what was answered, by revision or by what went wrong."""
    ended, answered = threading.Event(), Counter[str]()

    def send() -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            while not ended.wait(0.02):
                answer = client.post(shell.gateway + INFER, json=body)
                answered[answer.headers["fairlead-revision"] if answer.is_success else answer.text] += 1

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield answered
    finally:
        ended.set()
        sender.join(90)


def sign_in(shell: Shell, token: str) -> httpx.Response:
    """Return the page that a browser gets which signs in with a token."""
    with httpx.Client(base_url=shell.url, trust_env=False, timeout=60, follow_redirects=True) as browser:
        browser.get("/signin/")
        form = {"token": token, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        return browser.post("/signin/", data=form, headers={"Origin": shell.url})


def answering(shell: Shell, body: dict[str, Any]) -> str:
    """Return the revision that answers, once one does."""

    def ask() -> str:
        with suppress(httpx.TransportError):
            answer = httpx.post(shell.gateway + INFER, json=body, trust_env=False, timeout=60)
            return answer.headers["fairlead-revision"] if answer.is_success else ""
        return ""

    return until(ask, 300, "an answer of the model")


def test_it_starts_and_one_signs_in_with_the_token(shell: Shell) -> None:
    secrets, up, token = blocks("Start")
    shell.run(secrets)
    shell.run(up)
    assert httpx.get(f"{shell.url}/readyz", trust_env=False, timeout=60).json() == {"ready": True}
    shell.run(token)
    made = shell.run("echo $FAIRLEAD_TOKEN").strip()
    assert sign_in(shell, made).url.path != "/signin/"
    assert sign_in(shell, "another").url.path == "/signin/"


def test_compose_has_nothing_to_say_against_the_file(shell: Shell) -> None:
    assert shell.run(f"{COMMAND} config --quiet 2>&1") == ""
    unnamed = shell.run("env -u POSTGRES_PASSWORD docker compose config --quiet 2>&1 || true")
    assert "POSTGRES_PASSWORD is missing a value: give the file that has it with --env-file fairlead.env" in unnamed


@pytest.mark.parametrize("name", STAY_UP)
def test_a_container_that_stays_up_is_healthy_and_limited(docker: Engine, shell: Shell, name: str) -> None:
    container = shell.run(f"{COMMAND} ps --quiet {name}").strip()
    (seen,) = json.loads(docker.docker("inspect", container))
    memory_mib = {"postgres": 1024, "redis": 256, "web": 1024, "beat": 512}
    assert seen["HostConfig"]["Memory"] == memory_mib.get(name, 0) << 20
    assert seen["HostConfig"]["LogConfig"]["Type"] == "local"
    assert seen["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
    assert (seen["State"]["Health"]["Status"], seen["State"]["OOMKilled"]) == ("healthy", False)


def test_what_one_looks_at_is_there(shell: Shell) -> None:
    (look,) = blocks("Look what it does")
    printed = shell.run(look)
    assert all(name in printed for name in STAY_UP)


def test_a_model_is_served_and_its_next_version_rolled_out(shell: Shell, body: dict[str, Any]) -> None:
    serve, ask, canary = blocks("Serve a model")
    shell.run(serve)
    answered = json.loads(shell.run(ask))
    assert answered["model_version"] == "1"
    with traffic(shell, body) as counted:
        shell.run(canary)
    assert set(counted) == {"digits-00001", "digits-00002"}, "no request failed, and both versions answered"
    assert counted["digits-00002"] >= 50
    assert json.loads(shell.run(ask))["model_version"] == "2"


def test_nothing_is_lost_by_a_restart(shell: Shell, body: dict[str, Any]) -> None:
    before = state(shell)
    (restart,) = blocks("Restart")
    shell.run(restart)
    assert answering(shell, body) == "digits-00002"
    assert state(shell) == before


def test_a_backup_is_restored_where_all_was_removed(shell: Shell, body: dict[str, Any]) -> None:
    before = state(shell)
    (back_up,), (restore,) = blocks("Back up"), blocks("Restore")
    shell.run(back_up)
    shell.run(f"{COMMAND} down --volumes")
    shell.run(restore)
    assert answering(shell, body) == "digits-00002"
    assert state(shell) == before


def test_an_upgrade_and_a_stop_keep_what_there_is(shell: Shell, body: dict[str, Any]) -> None:
    before = state(shell)
    (upgrade,), (stop,) = blocks("Upgrade"), blocks("Stop")
    shell.run(stop)
    assert shell.run(f"{COMMAND} ps --all --quiet") == ""
    shell.run(upgrade)
    assert answering(shell, body) == "digits-00002"
    assert state(shell) == before


def state(shell: Shell) -> list[Any]:
    """Return what the platform remembers: the versions, the rollout's end, and who may ask."""
    versions = shell.fairlead("models", "show", "digits")["versions"]
    rollout = shell.fairlead("rollouts", "status", "digits")
    return [[(each["number"], each["status"], each["digest"]) for each in versions], rollout["id"], rollout["phase"]]
