"""What a check of a cluster finds. Standard library only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that services need of a cluster.

    Attributes:
        about: what was looked at, such as `API server` or `namespace vision`.
        message: what was found, in one sentence.
        remedy: what to do where it is not `ok`; empty where it is.
    """

    about: str
    ok: bool
    message: str
    remedy: str = ""
