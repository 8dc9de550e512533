"""The images do their work as a user without rights, on a root file system that cannot be written."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.docker.conftest import BUILT
from tests.docker.engine import Engine
from tests.releases.record import version
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.images

SAFE = ("--network=host", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp")
HOME = "--tmpfs=/var/lib/fairlead:uid=65532,gid=65532,mode=700"
LARGEST_BYTES = {"runtime-cpu": 450_000_000, "control-plane": 500_000_000, "one-machine": 700_000_000}
_ANSWER_S = 120


def image(target: str) -> str:
    """Return what `make images` calls the image of a target."""
    return f"fairlead/{target.replace('runtime-cpu', 'serving-runtime')}:{version()}"


@contextmanager
def running(docker: Engine, *arguments: str) -> Iterator[str]:
    """Run a container until the block ends; its output is told where the block fails."""
    container = docker.docker("run", "--detach", *SAFE, *arguments)
    try:
        yield container
    except BaseException:
        print(docker.attempt("logs", container))  # noqa: T201 - what pytest shows of a failed test
        raise
    finally:
        docker.docker("rm", "--force", container)


def answer(url: str) -> httpx.Response:
    """Return the first answer that comes from `url` within two minutes."""
    deadline = time.monotonic() + _ANSWER_S
    while True:
        try:
            return httpx.get(url, trust_env=False, timeout=10)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def written(file: Path) -> str:
    """Return what is in `file` once it is there."""
    deadline = time.monotonic() + _ANSWER_S
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} was not written"
        time.sleep(0.1)
    return file.read_text()


def test_the_runtime_answers_a_v2_request(docker: Engine, tmp_path: Path) -> None:
    models, ports = tmp_path / "models", tmp_path / "ports"
    (models / "same" / "1").mkdir(parents=True)
    onnx_models.identity(models / "same" / "1" / "model.onnx")
    ports.mkdir()
    for folder in (tmp_path, *tmp_path.parents[:2], ports):
        folder.chmod(0o777)
    flags = [f"--{protocol}-port=0" for protocol in ("http", "grpc", "metrics")]
    flags += ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--port-file=/ports/ports.json"]
    mounts = ["-v", f"{models}:/models:ro", "-v", f"{ports}:/ports"]
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    with running(docker, *mounts, image("runtime-cpu"), "--model-repository=/models", *flags) as container:
        http = json.loads(written(ports / "ports.json"))["http"]
        url = f"http://127.0.0.1:{http}/v2/models/same/infer"
        answered = httpx.post(url, json={"inputs": [tensor]}, trust_env=False, timeout=60)
        assert answered.json()["outputs"][0]["data"] == [1, 2, 3, 4]
        docker.docker("stop", "--time", "60", container)
        state = json.loads(docker.docker("inspect", container))[0]["State"]
    assert state["ExitCode"] == 0, "it stops in order"


def test_web_answers_when_its_database_is_there(docker: Engine, tmp_path: Path) -> None:
    port_of = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])"
    port = docker.docker("run", "--rm", *SAFE, image("control-plane"), "python", "-c", port_of)
    serve = f"exec python -m uvicorn fairlead.asgi:application --host 127.0.0.1 --port {port} --loop uvloop"
    settings = ["-e", "FAIRLEAD_SECRET_KEY=" + "for-a-test-" * 5, HOME]
    command = ["sh", "-c", f"python -m django migrate --verbosity 0 && {serve}"]
    with running(docker, *settings, image("control-plane"), *command):
        assert answer(f"http://127.0.0.1:{port}/healthz").json() == {"live": True}
        assert answer(f"http://127.0.0.1:{port}/readyz").json() == {"ready": True}
        page = answer(f"http://127.0.0.1:{port}/signin/").text
        script = page.partition('src="')[2].partition('"')[0]
        assert answer(f"http://127.0.0.1:{port}{script}").status_code == 200, "the pages' script is in the image"


@pytest.mark.parametrize(
    "command",
    [
        ["celery", "-A", "fairlead", "worker", "--help"],
        ["fairlead", "--help"],
        ["python", "-c", "import django; django.setup(); import integrations.clusters.kubernetes.driver, s3fs, gcsfs"],
        ["python", "-m", "serving_runtime", "check-config", "--help"],
    ],
    ids=" ".join,
)
def test_the_control_plane_has_its_programs(docker: Engine, command: list[str]) -> None:
    key = "FAIRLEAD_SECRET_KEY=" + "for-a-test-" * 5
    docker.docker("run", "--rm", *SAFE, HOME, "-e", key, image("control-plane"), *command)


@pytest.mark.parametrize("name", BUILT)
def test_nobody_in_it_is_root_or_can_write_what_runs(docker: Engine, name: str) -> None:
    assert docker.docker("run", "--rm", "--entrypoint=id", image(name), "-u") == "65532"
    writable = ["/opt/fairlead", "/usr", "/srv", "-writable", "-not", "-type", "l"]
    assert docker.docker("run", "--rm", "--entrypoint=find", image(name), *writable) == ""


@pytest.mark.parametrize("name", BUILT)
def test_its_bill_of_materials_lists_what_is_installed(docker: Engine, name: str) -> None:
    run = ["run", "--rm", "--entrypoint", "python", image(name), "-c"]
    bill = json.loads(docker.docker(*run, "print(open('/opt/fairlead/sbom.cdx.json').read())"))
    listed = {(each["name"].lower().replace("_", "-"), each["version"]) for each in bill["components"]}
    python = "import importlib.metadata as m; print(*(f'{d.name}={d.version}' for d in m.distributions()), sep='\\n')"
    packages = docker.docker(*run, python).splitlines()
    packages += docker.docker(
        "run", "--rm", "--entrypoint=dpkg-query", image(name), "-W", "-f", "${Package}=${Version}\\n"
    ).splitlines()
    installed = {(each.partition("=")[0].lower().replace("_", "-"), each.partition("=")[2]) for each in packages}
    assert listed == {(package, version) for package, version in installed if package != "fairlead"}, "all but our own"
    assert len(listed) > 100


@pytest.mark.parametrize("name", BUILT)
def test_it_stays_small(docker: Engine, name: str) -> None:
    size = int(docker.docker("image", "inspect", "--format", "{{.Size}}", image(name)))
    assert size < LARGEST_BYTES[name], f"{name} has {size / 1e6:.0f} MB"
