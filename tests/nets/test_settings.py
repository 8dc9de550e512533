"""Settings stay: their names, types and defaults, and the environment variables that they and the programs read."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tests.nets._support import settings_probe
from tests.nets._support.modules import PLATFORM, RUNTIME, modules, strings
from tests.nets._support.recording import ROOT, check

COMMAND_LINE = "fairlead_cli"
VARIABLE = re.compile(r"FAIRLEAD_[A-Z0-9_]+[A-Z0-9]")


def shown() -> list[str]:
    """Return the settings as a process without any variable but the required one has them."""
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{PLATFORM}{os.pathsep}{ROOT}",
        "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
        "FAIRLEAD_SECRET_KEY": "x",
        "FAIRLEAD_HOME": "/home/of/fairlead",
    }
    command = [sys.executable, "-m", settings_probe.__name__]
    done = subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.replace(str(ROOT), "ROOT").splitlines()


def read_from() -> Iterator[str]:
    """Yield a line for each variable: the setting that has it, and how it is read."""
    spec = find_spec(os.environ["DJANGO_SETTINGS_MODULE"])
    assert spec is not None
    assert spec.origin is not None
    for statement in ast.parse(Path(spec.origin).read_text()).body:
        for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
            named = [each.value for each in call.args if isinstance(each, ast.Constant)]
            if named and isinstance(named[0], str) and VARIABLE.fullmatch(named[0]):
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                setting = ast.unparse(targets[0]) if targets else "?"
                yield f"{named[0]} {ast.unparse(call.func).rpartition('.')[2]} {setting}"


def named_in_code() -> Iterator[str]:
    """Yield each variable of ours with the programs whose code names it."""
    programs = {RUNTIME: "runtime", COMMAND_LINE: "command line"}
    found = {
        (variable, programs.get(module.room, "control plane"))
        for name, module in modules().items()
        if "FAIRLEAD_" in module.text
        for variable in (str(text.value) for text in strings(name))
        if VARIABLE.fullmatch(variable)
    }
    yield from (f"{variable} {program}" for variable, program in sorted(found))


def test_settings_are_as_they_were() -> None:
    check("settings.txt", "a setting's default", shown())


def test_variables_are_as_they_were() -> None:
    lines = ["# read by the settings", *sorted(read_from()), "# named in code", *named_in_code()]
    check("variables.txt", "an environment variable", lines)
