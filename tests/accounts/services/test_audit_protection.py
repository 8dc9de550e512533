"""The control plane as a PostgreSQL role that can read and add audit entries, and nothing else to them."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO

import psycopg2
import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, AuditSigningKey
from accounts.selectors.audit_chain import audit_verify
from accounts.selectors.audit_protection import AUDIT_TABLES, audit_excess
from accounts.services import audit_record
from accounts.services.audit_chain import audit_chain
from accounts.services.audit_sinks import sink_claim

NOW = datetime.now(UTC)
ROLE = 'fairlead "app"'
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _role() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no roles")
    execute('CREATE ROLE "fairlead ""app""" LOGIN')


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@contextmanager
def as_the_application() -> Iterator[None]:
    """Run the block with the role's privileges."""
    execute('SET ROLE "fairlead ""app"""')
    try:
        yield
    finally:
        execute("RESET ROLE")


def protect() -> str:
    out = StringIO()
    call_command("audit_protect", ROLE, apply=True, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_the_application_records_chains_and_verifies(api: Callable[..., APIClient]) -> None:
    client = api(Scope.ADMIN)
    protect()
    with as_the_application():
        made = client.post("/api/v1/tokens", {"name": "ci"})
        assert made.status_code == 201
        assert client.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 204
        assert AuditEntry.objects.filter(action="token.revoke").count() == 1
        assert audit_chain(now=NOW) == AuditEntry.objects.count()
        verified = client.get("/api/v1/audit/verification").json()
        assert (verified["broken"], verified["protected"]) == ("", True)
        assert sink_claim(sink="syslog", now=NOW) is not None
        with pytest.raises(CommandError, match="may not remove audit entries; run audit_prune with"):
            call_command("audit_prune", "2020-01-01")
    assert client.get("/api/v1/audit/verification").json()["protected"] is False  # the tests' own role is a superuser


REFUSED = (
    "UPDATE {0} SET {1} = 7",
    "DELETE FROM {0}",
    "TRUNCATE {0}",
    "ALTER TABLE {0} ADD COLUMN more int",
    "ALTER TABLE {0} OWNER TO current_user",
    "ALTER TABLE {0} DISABLE TRIGGER ALL",
    "CREATE TRIGGER t BEFORE INSERT ON {0} FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE RULE r AS ON INSERT TO {0} DO INSTEAD NOTHING",
    "DROP TABLE {0}",
    "CREATE FUNCTION length(text) RETURNS int LANGUAGE sql AS 'SELECT 0'",
)


@pytest.mark.parametrize("table", AUDIT_TABLES)
def test_the_application_cannot_change_the_log(table: str) -> None:
    protect()
    column = "position" if table == "accounts_auditlink" else "id"
    with as_the_application():
        for statement in REFUSED:
            with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"), transaction.atomic():
                execute(statement.format(table, column))
        execute(f"GRANT ALL ON {table} TO current_user")  # a warning: it may grant nothing
    assert audit_excess(role=ROLE) == []


def test_the_owner_prunes_and_the_application_goes_on(api: Callable[..., APIClient]) -> None:
    protect()
    with as_the_application():
        yesterday = NOW - timedelta(days=1)
        audit_record(actor="a", action="model.create", target="models/m", now=yesterday)
        audit_chain(now=yesterday)
    out = StringIO()
    call_command("audit_prune", f"{NOW:%Y-%m-%d}", stdout=out)
    assert out.getvalue() == "1 entries removed.\n"
    with as_the_application():
        assert api(Scope.ADMIN).post("/api/v1/tokens", {"name": "ci"}).status_code == 201
        audit_chain(now=NOW)
        assert audit_verify().broken == ""


def test_the_secret_key_is_replaced_as_the_application() -> None:
    audit_chain(now=NOW)
    AuditSigningKey.objects.create(sealed="x", created_at=NOW)
    protect()
    with as_the_application():
        assert AuditSigningKey.objects.update(sealed="y") == 1
        with pytest.raises(ProgrammingError), transaction.atomic():
            AuditSigningKey.objects.update(created_at=NOW)


def test_the_application_uses_tables_of_later_migrations() -> None:
    protect()
    execute("CREATE TABLE later (id bigserial PRIMARY KEY, x int)")
    with as_the_application():
        execute("INSERT INTO later (x) VALUES (1)")
        execute("UPDATE later SET x = 2")


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("ALTER ROLE {0} SUPERUSER", "is a superuser"),
        ("ALTER ROLE {0} CREATEROLE", "may create roles"),
        ("ALTER SCHEMA public OWNER TO {0}", "the owner of the schema public"),
        ("ALTER TABLE accounts_auditlink OWNER TO {0}", "is, or may become, the owner"),
        (
            "CREATE ROLE owners; ALTER TABLE accounts_auditentry OWNER TO owners; GRANT owners TO {0}",
            "the owner owners",
        ),
        ("CREATE ROLE dba; GRANT DELETE ON accounts_auditentry TO dba; GRANT dba TO {0}", "has DELETE on"),
    ],
)
def test_a_role_that_could_change_the_log_all_the_same_is_refused(before: str, words: str) -> None:
    execute(before.format('"fairlead ""app"""'))
    with pytest.raises(CommandError, match=f"nothing was changed.*{words}"):
        protect()


def test_the_sql_is_printed_and_an_unknown_role_refused() -> None:
    out = StringIO()
    call_command("audit_protect", ROLE, stdout=out)
    assert 'GRANT SELECT, INSERT ON "public"."accounts_auditentry"' in out.getvalue()
    assert audit_excess(role=ROLE) == []  # nothing was applied: it may do nothing at all
    with pytest.raises(CommandError, match="there is no role 'nobody'; create it first"):
        call_command("audit_protect", "nobody")


def test_the_application_starts_where_nothing_is_to_be_migrated() -> None:
    protect()
    with as_the_application():
        call_command("migrate", interactive=False, verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_a_login_of_the_role_cannot_become_another() -> None:
    protect()
    known = connection.settings_dict
    options = {"host": known["HOST"], "port": known["PORT"], "dbname": known["NAME"], "user": ROLE}
    try:
        with closing(psycopg2.connect(**options)) as login:
            login.autocommit = True
            with login.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM accounts_auditentry")
                for statement in (
                    "DELETE FROM accounts_auditentry",
                    "SET ROLE postgres",
                    "RESET ROLE; SET ROLE postgres",
                ):
                    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                        cursor.execute(statement)
    finally:
        execute('DROP OWNED BY "fairlead ""app"""')
        execute('DROP ROLE "fairlead ""app"""')
