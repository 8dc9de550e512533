"""How the parts of the embedded platform are called."""

import shlex
from pathlib import Path

import pytest

from fairlead_cli.up.addresses import Address
from fairlead_cli.up.components import Inherited, components, environment
from fairlead_cli.up.home import Home


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
