"""Hooks: what the room of services registers for usage, which is below it."""

from collections.abc import Iterable, Mapping

from common.hooks import Hook

accelerators: Hook[[Iterable[str]], Mapping[tuple[str, str], str]] = Hook()
"""Names of namespaces; returns the GPU or slice of a replica by `<namespace>` and revision, empty for none."""

services: Hook[[Iterable[str]], Iterable[tuple[str, str]]] = Hook()
"""Names of namespaces; returns namespace and name of their services on Kubernetes."""
