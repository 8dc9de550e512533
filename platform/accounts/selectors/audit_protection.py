"""Privileges of a PostgreSQL role on the audit log: what it may do besides reading and adding."""

from django.db import connection

from accounts.models import AuditCheckpoint, AuditEntry, AuditLink, AuditSigningKey

AUDIT_TABLES = tuple(model._meta.db_table for model in (AuditEntry, AuditLink, AuditCheckpoint, AuditSigningKey))
_TOO_MUCH = ("UPDATE", "DELETE", "TRUNCATE", "TRIGGER")


def audit_excess(*, role: str | None = None) -> list[str]:
    """Return what else a role may do to the audit log, as texts; empty where it can only read and add.

    Args:
        role: an existing one; None for that of this connection. Its memberships count.
    """
    if connection.vendor != "postgresql":
        return [f"the database is {connection.vendor}, which has no roles"]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolcreaterole FROM pg_roles WHERE rolname = COALESCE(%s, current_user)", [role]
        )
        name, is_superuser, creates_roles = cursor.fetchone()
        if is_superuser:
            return [f"{name} is a superuser"]
        if creates_roles:
            return [f"{name} may create roles (CREATEROLE), and before PostgreSQL 16 become a member of any"]
        cursor.execute(
            "SELECT relname, pg_get_userbyid(relowner) FROM pg_class "
            "WHERE oid = ANY(%s::regclass[]) AND pg_has_role(%s, relowner, 'MEMBER') ORDER BY relname",
            [list(AUDIT_TABLES), name],
        )
        found = [f"{name} is, or may become, the owner {owner} of {table}" for table, owner in cursor.fetchall()]
        # The owner of a schema may drop what is in it.
        cursor.execute(
            "SELECT DISTINCT nspname FROM pg_namespace JOIN pg_class ON relnamespace = pg_namespace.oid "
            "WHERE pg_class.oid = ANY(%s::regclass[]) AND pg_has_role(%s, nspowner, 'MEMBER') ORDER BY nspname",
            [list(AUDIT_TABLES), name],
        )
        found += [f"{name} is, or may become, the owner of the schema {schema}" for (schema,) in cursor.fetchall()]
        cursor.execute(
            "SELECT relname, privilege FROM pg_class, unnest(%s) AS privilege "
            "WHERE oid = ANY(%s::regclass[]) AND has_table_privilege(%s, oid, privilege) ORDER BY relname, privilege",
            [list(_TOO_MUCH), list(AUDIT_TABLES), name],
        )
        return found or [f"{name} has {privilege} on {table}" for table, privilege in cursor.fetchall()]


def audit_may_prune() -> bool:
    """Return whether the role of this connection may remove audit entries."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_and(has_table_privilege(name, 'DELETE')) FROM unnest(%s) AS name", [[*AUDIT_TABLES[:3]]]
        )
        return bool(cursor.fetchone()[0])
