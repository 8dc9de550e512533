"""The folder: made once, private, one `up` at a time."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_cli.errors import CliError
from fairlead_cli.up.home import home_path, locked, prepare

HOLD = """
import sys
from pathlib import Path
from fairlead_cli.up.home import locked, prepare
with locked(prepare(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_private_and_has_a_key(tmp_path: Path) -> None:
    home = prepare(tmp_path / "a" / "home")

    assert home.path.is_absolute()
    assert (mode(home.path), mode(home.secret_key)) == (0o700, 0o600)
    assert len(home.secret_key.read_text().strip()) >= 50
    assert home.logs.is_dir()
    assert home.run.is_dir()


def test_a_key_stays(tmp_path: Path) -> None:
    key = prepare(tmp_path).secret_key.read_text()

    assert prepare(tmp_path).secret_key.read_text() == key


def test_a_file_in_the_place_of_the_home_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")

    with pytest.raises(CliError, match=r"/home cannot be used as home: File exists"):
        prepare(tmp_path / "home")


def test_a_second_one_is_told_who_holds_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        with pytest.raises(CliError) as caught, locked(prepare(tmp_path)):
            pass
        holder.stdin.close()

    assert str(caught.value) == (
        f"Fairlead is already running in {tmp_path} (process {holder.pid}); "
        f"end it with `kill {holder.pid}` or give this one another folder with --home"
    )


def test_the_lock_ends_with_its_holder(tmp_path: Path) -> None:
    home = prepare(tmp_path)
    with locked(home):
        pass

    with locked(home):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, two levels below a folder that has a home."""
    monkeypatch.delenv("FAIRLEAD_HOME", raising=False)
    prepare(tmp_path / ".fairlead")
    folder = tmp_path / "models" / "digits"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_the_home_of_a_folder_above_is_found(below: Path, tmp_path: Path) -> None:
    assert home_path({}) == tmp_path / ".fairlead"


def test_the_nearest_home_and_the_environment_go_first(below: Path) -> None:
    prepare(below.parent / ".fairlead")
    assert home_path({}) == below.parent / ".fairlead"

    (below / ".fairlead").mkdir()
    assert home_path({}).resolve() == below / ".fairlead"
    assert home_path({"FAIRLEAD_HOME": "elsewhere"}) == Path("elsewhere")


def test_a_folder_of_that_name_that_is_no_home_is_passed_by(below: Path, tmp_path: Path) -> None:
    (below.parent / ".fairlead").mkdir()

    assert home_path({}) == tmp_path / ".fairlead"


def test_a_home_above_that_is_another_users_is_none(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)

    assert home_path({}) == Path(".fairlead")
