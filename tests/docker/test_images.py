"""The images do their work as a user without rights, on a root file system that cannot be written."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from serving_runtime.datatypes import Array
from tests.docker.conftest import BUILT
from tests.docker.engine import Engine
from tests.releases.record import version
from tests.serving_runtime import onnx_models
from tests.serving_runtime.backends.conformance import CASES, rows

pytestmark = pytest.mark.images

SAFE = ("--network=host", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp")
HOME = "--tmpfs=/var/lib/fairlead:uid=65532,gid=65532,mode=700"
SERVING = [name for name in BUILT if name != "control-plane"]
LARGEST_BYTES = {
    "control-plane": 600_000_000,
    "one-machine": 1_100_000_000,
    "runtime-cpu": 850_000_000,
    "runtime-cuda": 3_500_000_000,
}
_ANSWER_S = 120


def image(target: str) -> str:
    """Return what `make images` calls the image of a target."""
    name, _, variant = target.partition("-") if target.startswith("runtime-") else (target, "", "cpu")
    suffix = "" if variant == "cpu" else f"-{variant}"
    return f"fairlead/{name.replace('runtime', 'serving-runtime')}:{version()}{suffix}"


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


@contextmanager
def serving(docker: Engine, name: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Serve `folder/models` by an image; gives the container and the address of its HTTP port."""
    ports = folder / "ports"
    ports.mkdir()
    for each in (folder, *folder.parents[:2], ports):
        each.chmod(0o777)
    flags = [f"--{protocol}-port=0" for protocol in ("http", "grpc", "metrics")]
    flags += ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--port-file=/ports/ports.json"]
    mounts = ["-v", f"{folder / 'models'}:/models:ro", "-v", f"{ports}:/ports", "--entrypoint=python"]
    command = [image(name), "-m", "serving_runtime", "--model-repository=/models", *flags]
    with running(docker, *mounts, *command) as container:
        yield container, f"http://127.0.0.1:{json.loads(written(ports / 'ports.json'))['http']}"


def infer(url: str, model: str, given: Array, outputs: Sequence[str]) -> list[Array]:
    """Return a model's answers to one input; the request must succeed."""
    told = httpx.get(f"{url}/v2/models/{model}", trust_env=False, timeout=60).json()["inputs"][0]
    tensor = {"name": told["name"], "datatype": told["datatype"], "shape": given.shape, "data": given.tolist()}
    body = {"inputs": [tensor], "outputs": [{"name": name} for name in outputs]}
    answered = httpx.post(f"{url}/v2/models/{model}/infer", json=body, trust_env=False, timeout=60)
    assert answered.is_success, answered.text
    return [np.reshape(each["data"], each["shape"]) for each in answered.json()["outputs"]]


@pytest.mark.parametrize("name", SERVING)
def test_it_answers_a_v2_request_and_stops_in_order(docker: Engine, name: str, tmp_path: Path) -> None:
    (tmp_path / "models" / "same" / "1").mkdir(parents=True)
    onnx_models.identity(tmp_path / "models" / "same" / "1" / "model.onnx")
    given = np.arange(4, dtype="f4").reshape(1, 4)
    with serving(docker, name, tmp_path) as (container, url):
        assert infer(url, "same", given, ["y"])[0].tolist() == given.tolist()
        docker.docker("stop", "--time", "60", container)
        state = json.loads(docker.docker("inspect", container))[0]["State"]
    assert state["ExitCode"] == 0


@pytest.mark.parametrize("name", SERVING)
def test_it_serves_every_format_but_torchs(docker: Engine, name: str, tmp_path: Path) -> None:
    cases = {kind.replace(" ", "-"): case for kind, case in CASES.items() if case.library != "torch"}
    expected = {}
    for model, case in cases.items():
        folder = tmp_path / "models" / model
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(case.config)
        expected[model] = case.make(folder / "1")
    with serving(docker, name, tmp_path) as (_, url):
        for model, case in cases.items():
            given = rows(3, case.inputs[0][1])
            answered = infer(url, model, given, [output for output, _, _ in case.outputs])
            for mine, theirs in zip(answered, expected[model](given), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=model)


def test_the_cuda_image_says_that_there_is_no_gpu(docker: Engine, tmp_path: Path) -> None:
    if "runtime-cuda" not in BUILT:
        pytest.skip('not built; run: make test-images IMAGES="control-plane one-machine runtime-cpu runtime-cuda"')
    folder = tmp_path / "models" / "same"
    (folder / "1").mkdir(parents=True)
    onnx_models.identity(folder / "1" / "model.onnx")
    (folder / "config.pbtxt").write_text("instance_group { kind: KIND_GPU }")
    run = ["run", "--rm", *SAFE, "-v", f"{tmp_path}:/here:ro", image("runtime-cuda")]
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    done = docker.attempt(*run, "--model-repository=/here/models", timeout_s=120)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 1, said
    assert "GPU" in said


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
        ["python", "-c", "import kombu.transport.redis, psycopg2"],
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
