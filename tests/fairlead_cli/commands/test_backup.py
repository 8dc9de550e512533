"""`fairlead backup` and `restore`: files in, files out; `tests/e2e` restores and serves."""

import io
import json
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

Fairlead = Callable[..., tuple[int, str, str]]


def content(home: Path) -> dict[str, str]:
    """Return the model files and secrets of a home."""
    files = (
        path
        for path in home.rglob("*")
        if path.is_file() and path.name in ("model.onnx", "secret-key", "token", "defaults")
    )
    return {path.relative_to(home).as_posix(): path.read_text() for path in files}


def notes(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "fairlead.sqlite3")) as database:
        return [text for (text,) in database.execute("SELECT text FROM note ORDER BY text")]


@pytest.fixture(autouse=True)
def _embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "FAIRLEAD_DATABASE_URL",
        "FAIRLEAD_ARTIFACTS_FOLDER",
        "FAIRLEAD_BACKUP_KEY",
        "FAIRLEAD_BACKUP_KEY_FILE",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path, migrated: Path) -> Path:
    """A home with a migrated database, one model, secrets, and what no backup needs."""
    made = tmp_path / "old home" / ".fairlead"
    for path, text in {
        "secret-key": "k" * 60,
        "token": "flt_secret",
        "defaults": "0.2",
        "artifacts/abc/model.onnx": "weights",
        "artifacts/.incoming/xyz/model.onnx": "half of the wei",
        "logs/web.log": "lines",
        "cluster/desired/default.digits.json": "{}",
    }.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text)
    shutil.copyfile(migrated, made / "fairlead.sqlite3")
    with closing(sqlite3.connect(made / "fairlead.sqlite3")) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE note (text)")
        database.execute("INSERT INTO note VALUES ('committed')")
    return made


def test_a_database_of_before_is_migrated_by_the_restore(fairlead: Fairlead, home: Path, tmp_path: Path) -> None:
    (home / "fairlead.sqlite3").unlink()
    with closing(sqlite3.connect(home / "fairlead.sqlite3")) as database, database:
        database.execute("CREATE TABLE note (text)")
    fairlead("backup", str(tmp_path / "b.tar"), "--home", str(home))
    code, _, complained = fairlead("restore", str(tmp_path / "b.tar"), "--home", str(tmp_path / "new"))
    assert (code, complained) == (0, "")
    with closing(sqlite3.connect(tmp_path / "new" / "fairlead.sqlite3")) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"note", "registry_modelversion"} <= tables


def test_programs_are_told_of_files_and_folders(fairlead: Fairlead, home: Path, tmp_path: Path) -> None:
    file, restored = tmp_path / "b.tar", tmp_path / "new"
    _, said, _ = fairlead("backup", str(file), "--home", str(home), "-o", "json")
    assert json.loads(said) == {"home": str(home), "file": str(file), "size_bytes": file.stat().st_size}
    _, said, _ = fairlead("restore", str(file), "--home", str(restored), "-o", "json")
    assert json.loads(said) == {"home": str(restored), "file": str(file)}


def test_what_was_backed_up_while_somebody_writes_is_there_after_the_restore(
    fairlead: Fairlead, home: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(home / "fairlead.sqlite3", isolation_level=None)) as writer:
        writer.execute("INSERT INTO note VALUES ('in the log only')")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO note VALUES ('not committed')")
        code, said, complained = fairlead("backup", str(tmp_path / "b.tar"), "--home", str(home))
        writer.execute("ROLLBACK")
    assert (code, complained) == (0, "")
    assert "it holds secrets" in said
    assert (tmp_path / "b.tar").stat().st_mode & 0o777 == 0o600

    restored = tmp_path / "new" / ".fairlead"
    code, said, complained = fairlead("restore", str(tmp_path / "b.tar"), "--home", str(restored))

    assert (code, complained) == (0, "")
    assert f"`fairlead up --home {restored}` starts it" in said
    assert content(restored) == {
        "secret-key": "k" * 60,
        "token": "flt_secret",
        "defaults": "0.2",
        "artifacts/abc/model.onnx": "weights",
    }
    assert notes(restored) == ["committed", "in the log only"]
    assert not (restored / "cluster").exists()
    assert [path.name for path in restored.parent.iterdir()] == [".fairlead"]


def test_nothing_is_overwritten(fairlead: Fairlead, home: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_text("precious")
    code, _, complained = fairlead("backup", str(tmp_path / "b.tar"), "--home", str(home))
    assert (code, (tmp_path / "b.tar").read_text()) == (1, "precious")
    assert complained.strip().endswith("b.tar exists; choose another name for the backup")

    code, _, complained = fairlead("restore", str(tmp_path / "b.tar"), "--home", str(home))
    assert code == 1
    assert "is not empty; restore to another folder with --home" in complained


def test_a_folder_without_a_platform_is_named(fairlead: Fairlead, tmp_path: Path) -> None:
    code, _, complained = fairlead("backup", str(tmp_path / "b.tar"), "--home", str(tmp_path / "none"))
    assert code == 1
    assert complained.strip() == f"{tmp_path}/none holds no database; name the folder of `fairlead up` with --home"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("variable", ["FAIRLEAD_DATABASE_URL", "FAIRLEAD_ARTIFACTS_FOLDER"])
def test_what_is_kept_elsewhere_is_not_pretended_to_be_saved(
    fairlead: Fairlead, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "elsewhere")
    code, _, complained = fairlead("backup", str(tmp_path / "b.tar"), "--home", str(home))
    assert code == 1
    assert complained.startswith(f"{variable} is set: ")


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        pytest.param(["fairlead-backup.json", "../outside"], "holds '../outside'", id="a way out of the folder"),
        pytest.param(["fairlead-backup.json", "artifacts/a/../../../x"], "which no backup has", id="a hidden way out"),
        pytest.param(["fairlead.sqlite3"], "is no backup of Fairlead", id="no manifest"),
        pytest.param([], "is no backup of Fairlead", id="nothing in it"),
    ],
)
def test_an_archive_that_is_no_backup_is_refused(
    fairlead: Fairlead, tmp_path: Path, names: list[str], complaint: str
) -> None:
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        for name in names:
            entry, text = tarfile.TarInfo(name), b'{"schema": "fairlead.backup/v1", "home": "/old"}'
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    code, _, complained = fairlead("restore", str(tmp_path / "b.tar"), "--home", str(tmp_path / "home"))
    assert code == 1
    assert complaint in complained
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar"]


def test_a_file_that_is_no_archive_is_refused(fairlead: Fairlead, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_text("hello")
    code, _, complained = fairlead("restore", str(tmp_path / "b.tar"), "--home", str(tmp_path / "home"))
    assert code == 1
    assert f"{tmp_path}/b.tar is no whole archive that `fairlead backup` wrote (" in complained
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar"]


@pytest.fixture
def encrypted(fairlead: Fairlead, home: Path, tmp_path: Path) -> tuple[Path, Path]:
    """An encrypted backup of several chunks, and the file of its key."""
    key, file = tmp_path / "key", tmp_path / "b.tar"
    key.write_text("5" * 64 + "\n")
    (home / "artifacts/abc/model.onnx").write_text("weights" * 40_000)
    code, said, complained = fairlead("backup", str(file), "--home", str(home), "--key-file", str(key))
    assert (code, complained) == (0, "")
    assert "it is encrypted" in said
    return file, key


def test_an_encrypted_backup_shows_nothing_and_restores_whole(
    fairlead: Fairlead, encrypted: tuple[Path, Path], home: Path, tmp_path: Path
) -> None:
    file, key = encrypted
    stored = file.read_bytes()
    assert not [text for text in (b"weights", b"flt_secret", b"k" * 60, b"fairlead-backup") if text in stored]
    restored = tmp_path / "new"
    code, _, complained = fairlead("restore", str(file), "--home", str(restored), "--key-file", str(key))
    assert (code, complained) == (0, "")
    assert content(restored)["artifacts/abc/model.onnx"] == "weights" * 40_000
    assert notes(restored) == ["committed"]


CHUNK = 64 * 1024 + 16
HEAD = len(b"fairlead-encrypted/v1\n") + 32


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(lambda whole: whole[:-1], "was changed or is not whole", id="last byte missing"),
        pytest.param(
            lambda whole: whole[: HEAD + CHUNK * ((len(whole) - HEAD) // CHUNK)],
            "was changed or is not whole",
            id="last chunk missing",
        ),
        pytest.param(
            lambda whole: whole[:HEAD] + whole[HEAD + CHUNK :],
            "has another key, or was changed",
            id="first missing",
        ),
        pytest.param(
            lambda whole: (
                whole[: HEAD + CHUNK]
                + whole[HEAD + 2 * CHUNK : HEAD + 3 * CHUNK]
                + whole[HEAD + CHUNK : HEAD + 2 * CHUNK]
                + whole[HEAD + 3 * CHUNK :]
            ),
            "was changed or is not whole",
            id="chunks exchanged",
        ),
        pytest.param(lambda whole: whole + b"x", "was changed or is not whole", id="something behind"),
        pytest.param(
            lambda whole: whole[:200_000] + bytes([whole[200_000] ^ 1]) + whole[200_001:],
            "was changed or is not whole",
            id="a bit flipped",
        ),
        pytest.param(lambda whole: whole[:HEAD], "has another key, or was changed", id="only a head"),
        pytest.param(lambda whole: whole[: HEAD - 10], "has another key, or was changed", id="half a head"),
    ],
)
def test_a_damaged_encrypted_backup_restores_nothing(
    fairlead: Fairlead,
    encrypted: tuple[Path, Path],
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
    words: str,
) -> None:
    file, key = encrypted
    file.write_bytes(damage(file.read_bytes()))
    code, _, complained = fairlead("restore", str(file), "--home", str(tmp_path / "new"), "--key-file", str(key))
    assert code == 1
    assert f"{file} {words}; nothing was restored" in complained
    assert not (tmp_path / "new").exists()


def test_the_key_of_the_environment_encrypts_and_restores(
    fairlead: Fairlead, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_text("5" * 64 + "\n")
    for number, (name, value) in enumerate((("FAIRLEAD_BACKUP_KEY", "5" * 64), ("FAIRLEAD_BACKUP_KEY_FILE", str(key)))):
        file = tmp_path / f"{number}.tar"
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            _, said, _ = fairlead("backup", str(file), "--home", str(home))
            assert "it is encrypted" in said
            assert b"flt_secret" not in file.read_bytes()
        for other, (its, of) in enumerate((("FAIRLEAD_BACKUP_KEY_FILE", str(key)), ("FAIRLEAD_BACKUP_KEY", "5" * 64))):
            with monkeypatch.context() as patched:
                patched.setenv(its, of)
                restored = tmp_path / f"home-{number}-{other}"
                code, _, complained = fairlead("restore", str(file), "--home", str(restored))
                assert (code, complained) == (0, "")


def test_a_key_of_the_environment_that_is_no_key_is_refused(
    fairlead: Fairlead, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> str:
        code, _, complained = fairlead("backup", str(tmp_path / "b.tar"), "--home", str(home))
        assert code == 1
        assert not (tmp_path / "b.tar").exists()
        return complained

    monkeypatch.setenv("FAIRLEAD_BACKUP_KEY", "hunter2")
    complained = refused()
    assert "FAIRLEAD_BACKUP_KEY has 7 bytes; a key has 32 to 4096" in complained
    assert "hunter2" not in complained
    monkeypatch.setenv("FAIRLEAD_BACKUP_KEY_FILE", str(tmp_path / "none"))
    assert "FAIRLEAD_BACKUP_KEY and FAIRLEAD_BACKUP_KEY_FILE are both set; keep one of them" in refused()
    monkeypatch.delenv("FAIRLEAD_BACKUP_KEY")
    assert "cannot be read: No such file or directory" in refused()


def test_an_encrypted_backup_needs_its_key(fairlead: Fairlead, encrypted: tuple[Path, Path], tmp_path: Path) -> None:
    file, _ = encrypted
    other, short = tmp_path / "other", tmp_path / "short"
    other.write_text("6" * 64)
    short.write_text("secret")
    for options, words in (
        ((), "is encrypted; name the file of its key with --key-file"),
        (("--key-file", str(other)), "has another key, or was changed; nothing was restored"),
        (("--key-file", str(short)), "has 6 bytes; a key has 32 to 4096: make one with `openssl rand -hex 32`"),
        (("--key-file", str(tmp_path / "none")), "cannot be read: No such file or directory"),
    ):
        code, _, complained = fairlead("restore", str(file), "--home", str(tmp_path / "new"), *options)
        assert code == 1
        assert words in complained
        assert not (tmp_path / "new").exists()
