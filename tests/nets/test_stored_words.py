"""Words that rows, messages and files hold stay: event kinds, audit actions, purposes of secrets, schemas of JSON."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from pytest_django import Settings

from accounts.selectors import SESSION_KEY, TOKEN_PREFIX
from common.encryption import unseal
from events.domain.kinds import Kind
from events.services.delivery import EVENTS, TEST
from tests.nets._support.modules import modules, tree
from tests.nets._support.recording import check

SEALED = "gAAAAABrB6GWZwPv09Qb1QjC_SgcmObywnYW0c8SdW7xosRzjeeheBEmqkMDUNbhPxuD_OaSGflRdQPQ4SKQ5sXUEEKqfc9EJg=="
"""`whsec_1` as version 0.1.0 sealed it under the key `an-earlier-key`."""
SCHEMA = re.compile(r"fairlead\.[a-z-]+/v\d+")


def keywords(word: str, function: str = "") -> Iterator[tuple[str, ast.expr]]:
    """Yield the module and the value of each keyword argument of this name, of calls of the function alone if given."""
    for name, module in modules().items():
        if f"{word}=" not in module.text:
            continue
        for call in (node for node in ast.walk(tree(name)) if isinstance(node, ast.Call)):
            called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if not function or called == function:
                yield from ((name, each.value) for each in call.keywords if each.arg == word)


def valued(name: str, node: ast.expr) -> str | None:
    """Return the text that an expression has in a module; None where only a caller knows it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    found: object = import_module(name)
    for part in ast.unparse(node).split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, str) else None


def purposes() -> set[str]:
    """Return what secrets are sealed for, which goes into the keys."""
    return {text for name, node in keywords("purpose") if (text := valued(name, node)) is not None}


def audited() -> set[str]:
    """Return the actions of the audit log; one that is put together is as it is written."""
    found = set()
    for _, node in keywords("action", "audit_record"):
        for each in (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,):
            found.add(str(each.value) if isinstance(each, ast.Constant) else ast.unparse(each))
    return found


def schemas() -> set[str]:
    return {found for module in modules().values() for found in SCHEMA.findall(module.text)}


def words() -> Iterator[str]:
    """Yield a line for each word."""
    yield from sorted(f"audit {each}" for each in audited())
    yield from (f"event {each}" for each in sorted(Kind))
    yield from (f"webhook event {each}" for each in sorted({*EVENTS, TEST} - set(Kind)))
    yield from sorted(f"purpose {each}" for each in purposes())
    yield from sorted(f"schema {each}" for each in schemas())
    yield f"salt of sessions {SessionStore().key_salt}"
    yield from (f"path in sessions {each}" for each in settings.AUTHENTICATION_BACKENDS)
    yield f"key in sessions {SESSION_KEY}"
    yield f"prefix of tokens {TOKEN_PREFIX}"


def test_words_are_as_they_were() -> None:
    check("stored_words.txt", "a word that rows or messages hold", words())


def test_what_an_earlier_version_sealed_is_read(settings: Settings) -> None:
    settings.SECRET_KEY = "an-earlier-key"
    assert unseal(SEALED, purpose="secret of a webhook") == "whsec_1"
