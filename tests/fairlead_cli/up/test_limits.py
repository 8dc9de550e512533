"""Limits of this machine at start."""

import os
import subprocess
import sys

import pytest

from fairlead_cli.up import limits
from fairlead_cli.up.home import Home

RAISES = """
import resource
from fairlead_cli.up.limits import raise_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))
raise_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
CLOSE = """
import os, resource, sys
from pathlib import Path
from fairlead_cli.up.home import Home
from fairlead_cli.up.limits import close_limits
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(*close_limits(Home(Path(sys.argv[1])), os.environ), sep="\\n")
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_a_process_opens_as_many_files_as_its_user_may() -> None:
    assert run(RAISES) == "256 256\n"


@pytest.mark.parametrize(("services", "takes"), [pytest.param(0, "", id="fits"), pytest.param(20, "70", id="does not")])
def test_what_the_services_of_the_folder_take_counts(home: Home, services: int, takes: str) -> None:
    desired = home.path / "cluster" / "desired"
    desired.mkdir(parents=True)
    for number in range(services):
        (desired / f"default.digits-{number}.json").write_text("{}")
    said = [line for line in run(CLOSE, str(home.path)).splitlines() if "open files" in line]
    assert len(said) == bool(takes)
    assert all(line.startswith(f"the platform takes {takes} open files to start, and each process") for line in said)


def test_a_machine_that_starts_no_process_is_one_sentence() -> None:
    if os.geteuid():
        pytest.skip("only root becomes a user that has a limit of processes")
    code = """
import os, resource
from pathlib import Path
from fairlead_cli.up.home import Home
from fairlead_cli.errors import CliError
from fairlead_cli.up.limits import close_limits
os.setuid(54322)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    close_limits(Home(Path("/nowhere")), os.environ)
except CliError as error:
    print(error)
"""
    assert run(code).startswith("the platform cannot start a process: ")


def test_limits_that_cannot_be_read_stop_no_start(home: Home) -> None:
    [said] = limits.close_limits(home, {"PYTHONHOME": "/nowhere"})
    assert said.startswith("the limits of this machine could not be read: ")
