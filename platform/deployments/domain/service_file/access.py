"""Access policy of a service file: who may call the service, on every route it has. Pure.

access: public                  everybody
access: authenticated           callers with a key for this service, or a token of an issuer
access: {teams: [fraud]}        of those, only the named teams, users, keys and subjects of issuers
"""

import re
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput
from common.files.document import Document
from integrations.clusters.base import Access

FIELD = "spec.access"
PUBLIC, AUTHENTICATED = "public", "authenticated"
MODES = (PUBLIC, AUTHENTICATED)
_NAMED = ("teams", "users", "keys", "subjects")
_MOST = 100
_LONGEST = 300
_SUBJECT = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?:[^*]*[^*]\*?|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?:\*")


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Who may call a service; `callers` is None where everybody may."""

    callers: Access | None = None


def parse_access(spec: Document) -> AccessPolicy | None:
    """Return the policy of `spec.access`; None where the file does not say.

    Raises:
        InvalidInput: it is of another form, or names no caller.
    """
    found = spec.raw("access", None)
    if found is None:
        return None
    if isinstance(found, str):
        if found not in MODES:
            raise InvalidInput(
                f"{FIELD} is {found[:60]!r}; expected {PUBLIC}, {AUTHENTICATED}, or an object with teams, users, "
                "keys or subjects",
                field=FIELD,
            )
        return policy_of(found)
    named = spec.document("access")
    callers = Access(*(_names(named, kind) for kind in _NAMED))
    named.refuse_unknown()
    if callers == Access():
        named.report(
            InvalidInput(
                f"{FIELD} names no caller; name teams, users, keys or subjects, or write {AUTHENTICATED}", field=FIELD
            )
        )
    return AccessPolicy(callers)


def policy_of(mode: str) -> AccessPolicy:
    """Return the policy of a mode of `MODES`."""
    return AccessPolicy(None if mode == PUBLIC else Access())


def access_json(policy: AccessPolicy) -> Any:
    """Return a policy as the file has it."""
    if policy.callers is None:
        return PUBLIC
    named = {kind: list(getattr(policy.callers, kind)) for kind in _NAMED if getattr(policy.callers, kind)}
    return named or AUTHENTICATED


def stored_access(value: Any) -> AccessPolicy:
    """Return the policy that `access_json` wrote; None, of a service of before there were any, is public."""
    if value is None or isinstance(value, str):
        return policy_of(value or PUBLIC)
    return AccessPolicy(Access(*(tuple(value.get(kind, ())) for kind in _NAMED)))


def _names(named: Document, kind: str) -> tuple[str, ...]:
    found = named.raw(kind, [])
    if (
        not isinstance(found, list)
        or len(found) > _MOST
        or not all(isinstance(each, str) and 0 < len(each) <= _LONGEST and each.isprintable() for each in found)
    ):
        named.fault(kind, f"is wrong; expected a list of at most {_MOST} names")
        return ()
    wrong = next((each for each in found if kind == "subjects" and not _SUBJECT.fullmatch(each)), None)
    if wrong is not None:
        named.fault(kind, f"has {wrong[:80]!r}; expected <issuer>:<sub>, or <issuer>:<beginning of a sub>*")
        return ()
    return tuple(dict.fromkeys(found))
