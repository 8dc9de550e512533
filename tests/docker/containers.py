"""Containers of the images, run without rights on a root file system that cannot be written, and what they answer."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from serving_runtime.common.datatypes import Array
from tests.docker._support.built import BUILT, TAG
from tests.docker.engine import Engine
from tests.servers.parts import free_port

SAFE = ("--network=host", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp")
HOME = "--tmpfs=/var/lib/fairlead:uid=65532,gid=65532,mode=700"
KEY = ("-e", "FAIRLEAD_SECRET_KEY=" + "for-a-test-" * 5)
_ANSWER_S = 120


def image(target: str, tag: str = TAG) -> str:
    """Return what `make images` calls the image of a target."""
    name, _, variant = target.partition("-") if target.startswith("runtime-") else (target, "", "cpu")
    suffix = "" if variant == "cpu" else f"-{variant}"
    return f"fairlead/{name.replace('runtime', 'serving-runtime')}:{tag}{suffix}"


def needs(target: str) -> None:
    """Leave the present test out where an image was not asked for."""
    if target not in BUILT:
        pytest.skip(f'not built; run: make test-images IMAGES="{target}"')


@contextmanager
def running(docker: Engine, *arguments: str) -> Iterator[str]:
    """Run a container until the block ends; its output is told where the block fails."""
    container = docker.docker("run", "--detach", *SAFE, *arguments)
    try:
        yield container
    except BaseException:
        print(said(docker, container))  # noqa: T201 - what pytest shows of a failed test
        raise
    finally:
        docker.docker("rm", "--force", container)


def said(docker: Engine, container: str) -> str:
    """Return what a container has written to its outputs."""
    logs = docker.attempt("logs", container)
    return (logs.stdout + logs.stderr).decode()


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


@contextmanager
def serving(
    docker: Engine, target: str, folder: Path, tag: str = TAG, more: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Serve `folder/models` by an image, with more flags; gives the container and the address of its HTTP port."""
    ports = folder / "ports"
    ports.mkdir()
    for each in (folder, *folder.parents[:2], ports):
        each.chmod(0o777)
    flags = [f"--{protocol}-port=0" for protocol in ("http", "grpc", "metrics")]
    flags += ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--port-file=/ports/ports.json"]
    mounts = ["-v", f"{folder / 'models'}:/models:ro", "-v", f"{ports}:/ports", "--entrypoint=python"]
    command = [image(target, tag), "-m", "serving_runtime", "--model-repository=/models", *flags, *more]
    with running(docker, *mounts, *command) as container:
        yield container, f"http://127.0.0.1:{json.loads(_written(ports / 'ports.json'))['http']}"


@contextmanager
def web(docker: Engine, target: str) -> Iterator[tuple[str, str]]:
    """Run web on a database of its own; gives the container and the pages' address."""
    port = free_port()
    serve = f"exec python -m uvicorn control_plane.asgi:application --host 127.0.0.1 --port {port} --loop uvloop"
    command = ["sh", "-c", f"python -m django migrate --verbosity 0 && {serve}"]
    with running(docker, *KEY, HOME, image(target), *command) as container:
        answer(f"http://127.0.0.1:{port}/healthz")
        yield container, f"http://127.0.0.1:{port}"


def infer(url: str, model: str, given: Array, outputs: Sequence[str] = ()) -> list[Array]:
    """Return a model's answers to one input, all where none is named; the request must succeed."""
    told = httpx.get(f"{url}/v2/models/{model}", trust_env=False, timeout=60).json()["inputs"][0]
    tensor = {"name": told["name"], "datatype": told["datatype"], "shape": given.shape, "data": given.tolist()}
    body = {"inputs": [tensor], "outputs": [{"name": name} for name in outputs]}
    answered = httpx.post(f"{url}/v2/models/{model}/infer", json=body, trust_env=False, timeout=60)
    assert answered.is_success, answered.text
    return [np.reshape(each["data"], each["shape"]) for each in answered.json()["outputs"]]


def _written(file: Path) -> str:
    deadline = time.monotonic() + _ANSWER_S
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} was not written"
        time.sleep(0.1)
    return file.read_text()
