"""Findings of a cluster check. Standard library only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One requirement of services on a cluster.

    Attributes:
        about: what was checked, such as `API server` or `namespace vision`.
        message: what was found, in one sentence.
        remedy: what to do where it is not `ok`; empty where it is.
    """

    about: str
    ok: bool
    message: str
    remedy: str = ""
