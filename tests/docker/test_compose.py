"""`docker/compose.yaml` is valid and safe, and says what the settings are."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docker._support.built import ROOT
from tests.docker._support.compose_file import FILE, STAY_UP
from tests.releases.record import version

OURS = ("migrate", "gateway", "web", "worker", "beat")


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
    return found


def test_it_is_a_compose_file() -> None:
    check = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*check, str(FILE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_it_runs_the_image_of_this_release(services: dict[str, dict[str, Any]]) -> None:
    assert {services[name]["image"] for name in OURS} == {"${FAIRLEAD_IMAGE:-fairlead/one-machine:" + version() + "}"}


@pytest.mark.parametrize("name", [*OURS, "redis"])
def test_a_service_has_no_rights(services: dict[str, dict[str, Any]], name: str) -> None:
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", STAY_UP)
def test_a_service_that_stays_up_says_whether_it_is_healthy(services: dict[str, dict[str, Any]], name: str) -> None:
    assert services[name]["healthcheck"]["test"][0] == "CMD"
    assert services[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", STAY_UP)
def test_a_service_that_stays_up_fills_neither_memory_nor_disk(services: dict[str, dict[str, Any]], name: str) -> None:
    has_models = name in ("gateway", "worker")
    assert services[name]["mem_limit"].endswith("_MEMORY:-0}" if has_models else ("m}", "g}"))
    assert services[name]["logging"] == {"driver": "local"}, "which rotates"


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_nothing_outside_reaches_the_stores(services: dict[str, dict[str, Any]], name: str) -> None:
    assert services[name]["network_mode"] == "none"
    assert "ports" not in services[name]


@pytest.mark.parametrize("name", OURS)
def test_what_a_service_is_told_are_settings(services: dict[str, dict[str, Any]], name: str) -> None:
    documented = set(re.findall(r"^\| `(FAIRLEAD_\w+)`", (ROOT / "docs/reference/settings.md").read_text(), re.M))
    assert set(services[name]["environment"]) <= documented
