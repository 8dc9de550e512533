"""Hooks: what the rooms of services and of keys register for usage, which is below them."""

from collections.abc import Iterable, Mapping

from common.hooks import Hook

accelerators: Hook[[Iterable[str]], Mapping[tuple[str, str], str]] = Hook()
"""Names of namespaces; returns the GPU or slice of a replica by `<namespace>` and revision, empty for none."""
has_service: Hook[[str, str], bool] = Hook()
"""A namespace and a name; returns whether there is such a service."""
team_of_key: Hook[[str], str] = Hook()
"""The name of a key, revoked ones too; returns the name of its team, empty for no such key."""

services: Hook[[Iterable[str]], Iterable[tuple[str, str]]] = Hook()
"""Names of namespaces; returns namespace and name of their services on Kubernetes."""
