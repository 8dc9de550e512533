import stat
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.selectors import token_of

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("token_create", "--name", "local", *arguments, stdout=out)
    return out.getvalue()


def test_prints_the_token_once() -> None:
    secret = run("--scope", "admin", "--expires-in", "2h", "--user", "root").strip()
    token = token_of(secret=secret, now=timezone.now())
    assert (token.name, token.scope, token.user.username) == ("local", Scope.ADMIN, "root")
    assert token.expires_at - token.created_at == timedelta(hours=2)


def test_writes_it_where_only_the_owner_reads_and_prints_nothing(tmp_path: Path) -> None:
    file = tmp_path / "made" / "token"
    assert run("--output", str(file)) == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token_of(secret=file.read_text().strip(), now=timezone.now()).scope == Scope.READ
    assert [path.name for path in file.parent.iterdir()] == ["token"]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.unlink(), id="the file is missing"),
        pytest.param(lambda file: file.write_text("flt_of_another_database\n"), id="its token is not known"),
        pytest.param(lambda file: ApiToken.objects.update(revoked_at=timezone.now()), id="its token was revoked"),
    ],
)
def test_if_missing_makes_one_only_where_the_file_has_none_that_works(tmp_path: Path, spoil: "object") -> None:
    file = tmp_path / "token"
    run("--if-missing-file", str(file))
    first = file.read_text()
    run("--if-missing-file", str(file))
    assert file.read_text() == first
    assert ApiToken.objects.count() == 1
    spoil(file)  # type: ignore[operator]
    run("--if-missing-file", str(file))
    assert token_of(secret=file.read_text().strip(), now=timezone.now())
    assert ApiToken.objects.count() == 2


def test_a_wrong_duration_is_one_sentence() -> None:
    with pytest.raises(CommandError, match="'soon' is no duration"):
        run("--expires-in", "soon")


def test_a_file_that_cannot_be_written_leaves_no_token_that_works(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(CommandError, match="cannot be written"):
        run("--output", str(tmp_path / "token"))
    assert ApiToken.objects.get().revoked_at is not None
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
