"""`manage.py audit_protect`: lets a PostgreSQL role run the control plane, except change the audit log."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection, transaction

from accounts.models import AuditSigningKey
from accounts.selectors.audit_protection import AUDIT_TABLES, audit_excess


class Command(BaseCommand):
    """Prints or applies the SQL; run it as the owner of the tables, who migrates and prunes."""

    help = (
        "Prints the SQL that lets a PostgreSQL role run the control plane without the right to change or remove audit "
        "entries. Run it with FAIRLEAD_DATABASE_URL of the owner of the tables."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", help="existing role that the control plane is to connect as")
        parser.add_argument("--apply", action="store_true", help="also runs the SQL, and checks what the role may do")

    def handle(self, *_: Any, role: str, apply: bool, **__: Any) -> None:
        """Print the statements; CommandError where the role could change the log all the same."""
        if connection.vendor != "postgresql":
            raise CommandError(f"the database is {connection.vendor}, which has no roles; this needs PostgreSQL")
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_schema()")
            statements = protection(role, schema=cursor.fetchone()[0])
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
            if cursor.fetchone() is None:
                raise CommandError(f"there is no role {role!r}; create it first: CREATE ROLE … LOGIN PASSWORD …")
        self.stdout.write("".join(f"{statement};\n" for statement in statements), ending="")
        if not apply:
            return
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                excess = audit_excess(role=role)
                if excess:
                    raise CommandError(f"nothing was changed, since {role} could change the log: {'; '.join(excess)}")
        except DatabaseError as error:
            raise CommandError(f"nothing was changed: {error}".strip()) from error
        self.stderr.write(f"{role} can read and add audit entries, and neither change nor remove them")


def protection(role: str, *, schema: str) -> list[str]:
    """Return the statements, for the owner of the schema's tables; tables of later releases are included."""
    to, within = _quoted(role), _quoted(schema)
    audit = ", ".join(f"{within}.{_quoted(table)}" for table in AUDIT_TABLES)
    keys = f"{within}.{_quoted(AuditSigningKey._meta.db_table)}"
    rows, numbers = "SELECT, INSERT, UPDATE, DELETE", "USAGE, SELECT"
    return [
        f"REVOKE CREATE ON SCHEMA {within} FROM PUBLIC, {to}",
        f"GRANT USAGE ON SCHEMA {within} TO {to}",
        f"GRANT {rows} ON ALL TABLES IN SCHEMA {within} TO {to}",
        f"GRANT {numbers} ON ALL SEQUENCES IN SCHEMA {within} TO {to}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {within} GRANT {rows} ON TABLES TO {to}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {within} GRANT {numbers} ON SEQUENCES TO {to}",
        f"REVOKE ALL ON {audit} FROM PUBLIC, {to}",
        f"GRANT SELECT, INSERT ON {audit} TO {to}",
        # Replacing FAIRLEAD_SECRET_KEY encrypts it again; any other change makes the signatures of the log invalid.
        f"GRANT UPDATE (sealed) ON {keys} TO {to}",
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
