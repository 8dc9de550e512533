"""How the parts of the embedded platform are called."""

import shlex
from pathlib import Path

import pytest

from fairlead_cli.up.addresses import Address
from fairlead_cli.up.components import Inherited, components, environment, metrics_access
from fairlead_cli.up.home import Home, prepare


@pytest.mark.parametrize(
    ("variable", "flag", "allowed"),
    [("", False, False), ("", True, True), ("1", False, True), ("yes", True, True), ("false", False, False)],
)
def test_replicas_run_models_in_python_where_flag_or_variable_says_so(
    variable: str, flag: bool, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_ALLOW_PYTHON_MODELS", variable)
    home = Home(tmp_path)
    variables = environment(home, url="http://a:1", gateway_url="http://a:2", allow_python_models=flag)
    assert variables["FAIRLEAD_ALLOW_PYTHON_MODELS"] == ("true" if flag else variable), "web and worker know it too"
    parts = components(home, Address("a", 1), Address("a", 2), variables, Inherited(8, 9, 7))
    (agent,) = (part.command for part in parts if part.name == "agent")
    runtime = shlex.split(agent[agent.index("--runtime") + 1])
    assert ("--allow-python-models=true" in runtime) is allowed


@pytest.mark.parametrize(
    ("given", "asked", "access"), [("", "token", "token"), ("anyone", "token", "anyone"), ("", "", "")]
)
def test_who_may_read_metrics_is_what_the_variable_says_else_what_the_home_has(
    given: str, asked: str, access: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_METRICS_ACCESS", given)
    variables = environment(Home(tmp_path), url="http://a:1", gateway_url="http://a:2", metrics_access=asked)
    assert variables["FAIRLEAD_METRICS_ACCESS"] == access


def test_only_a_new_home_that_others_reach_closes_its_metrics(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    (earlier / "secret-key").write_text("of then")
    everywhere, here = Address("0.0.0.0", 80), Address("127.0.0.1", 80)
    assert metrics_access(prepare(earlier), everywhere) == ""
    new = prepare(tmp_path / "new")
    assert (metrics_access(new, everywhere), metrics_access(new, here)) == ("token", "")
    assert metrics_access(prepare(tmp_path / "new"), everywhere) == "token", "at its second start too"
